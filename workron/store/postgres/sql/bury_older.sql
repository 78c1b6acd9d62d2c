-- bury_older: take back at once what older boots of a worker held; they are dead, for this one lives.
-- Older is who was entered before: what was entered later is for its own beats to decide.
CREATE OR REPLACE FUNCTION workron.bury_older(_worker workron.worker) RETURNS void
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
    PERFORM workron.prove_dead(_worker.id, _worker.pool, _worker.name);
END
$$;
