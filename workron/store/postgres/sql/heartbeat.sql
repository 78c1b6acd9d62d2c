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
BEGIN
    UPDATE workron.worker SET heartbeats = heartbeats + 1 WHERE session = _key RETURNING * INTO _worker;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'unknown session key: the worker was reaped, or never registered'
            USING ERRCODE = 'WK001';
    END IF;
    IF _worker.heartbeats = 1 THEN
        PERFORM workron.reap_older_sessions(_worker);
    END IF;
    IF _worker.heartbeats - _worker.claims_since >= 4 THEN
        PERFORM workron.advance_claims_since(_worker);
    END IF;
    RETURN QUERY
    SELECT _worker.draining, m.value, r.job, r.claim, r.fence, r.signal::text
    FROM workron.meta m LEFT JOIN workron.running r ON r.worker = _worker.id AND r.heartbeat >= _worker.claims_since
    WHERE m.key = 'database';
END
$$;
