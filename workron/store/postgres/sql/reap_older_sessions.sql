-- reap_older_sessions: reap the older sessions of a worker name; this session proves that they are
-- dead.
-- A session is older if it registered before. A later one is left to its own heartbeats.
CREATE OR REPLACE FUNCTION workron.reap_older_sessions(_worker workron.worker) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _older bigint;
BEGIN
    FOR _older IN
        SELECT w.id FROM workron.worker w
        WHERE w.pool = _worker.pool AND w.name = _worker.name AND w.id < _worker.id ORDER BY w.id
    LOOP
        PERFORM workron.reap(_older, NULL, NULL, true);
    END LOOP;
    PERFORM workron.mark_worker_dead(_worker.id, _worker.pool, _worker.name);
END
$$;
