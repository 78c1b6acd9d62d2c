-- heartbeat: prove that a worker lives, and tell it what it still holds.
-- The first beat proves its older boots dead. The registration does not: it may be a late copy of a
-- dead boot's, and that boot never beats.
CREATE OR REPLACE FUNCTION workron.heartbeat(_key uuid)
RETURNS TABLE (draining boolean, database text, job bigint, claim uuid, fence bigint, mark text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = workron, pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    _worker workron.worker;
BEGIN
    UPDATE workron.worker SET beats = beats + 1 WHERE session = _key RETURNING * INTO _worker;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no worker has this session key: it was taken back, or never registered'
            USING ERRCODE = 'WK001';
    END IF;
    IF _worker.beats = 1 THEN
        PERFORM workron.bury_older(_worker);
    END IF;
    IF _worker.beats - _worker.since >= 4 THEN
        PERFORM workron.forget(_worker);
    END IF;
    RETURN QUERY
    SELECT _worker.draining, m.value, r.job, r.claim, r.fence, r.mark::text
    FROM workron.meta m LEFT JOIN workron.running r ON r.worker = _worker.id AND r.beat >= _worker.since
    WHERE m.key = 'database';
END
$$;
