-- heartbeat: increment a worker's heartbeat counter and return the claims that it holds.
-- The first heartbeat reaps older sessions of the same name. A registration does not prove that they
-- are dead: it may be a delayed copy from a dead process, which sends no heartbeats.
CREATE OR REPLACE FUNCTION workron.heartbeat(_key uuid)
RETURNS TABLE (draining boolean, database text, job bigint, claim uuid, fence bigint, signal text)
LANGUAGE plpgsql SECURITY DEFINER
AS $$
#variable_conflict use_column
DECLARE
    _worker workron.worker;
    _older bigint;
    _oldest bigint;
BEGIN
    UPDATE workron.worker SET heartbeats = heartbeats + 1 WHERE session = _key RETURNING * INTO _worker;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'unknown session key: the worker was reaped, or never registered'
            USING ERRCODE = 'WK001';
    END IF;
    IF _worker.heartbeats = 1 THEN
        -- Sessions that registered later are left to their own heartbeats.
        FOR _older IN
            SELECT w.id FROM workron.worker w
            WHERE w.pool = _worker.pool AND w.name = _worker.name AND w.id < _worker.id ORDER BY w.id
        LOOP
            PERFORM workron.reap(_older, NULL, NULL, true);
        END LOOP;
        PERFORM workron.mark_worker_dead(_worker.id, _worker.pool, _worker.name);
    END IF;
    IF _worker.heartbeats - _worker.claims_since >= 4 THEN
        -- Index entries of ended claims stay in `running_worker` while any transaction is open, and
        -- heartbeats skip those before `claims_since`. The row is locked, so that no claim is in progress
        -- that this does not see; if it is locked, a later heartbeat tries again. A claim that waits for
        -- this lock reads the heartbeat counter after it.
        PERFORM 1 FROM workron.worker WHERE id = _worker.id FOR UPDATE SKIP LOCKED; -- guard: claims_since
        IF FOUND THEN
            SELECT r.heartbeat INTO _oldest FROM workron.running r
            WHERE r.worker = _worker.id AND r.heartbeat >= _worker.claims_since ORDER BY r.heartbeat LIMIT 1;
            _oldest := coalesce(_oldest, _worker.heartbeats - 1);
            UPDATE workron.worker SET claims_since = _oldest WHERE id = _worker.id AND claims_since < _oldest;
        END IF;
    END IF;
    RETURN QUERY
    SELECT _worker.draining, m.value, r.job, r.claim, r.fence, r.signal::text
    FROM workron.meta m LEFT JOIN workron.running r ON r.worker = _worker.id AND r.heartbeat >= _worker.claims_since
    WHERE m.key = 'database';
END
$$;
