-- claim: take at most one ready job for each claim id, by priority, then by age.
-- Queued -> Running (claim)
-- The walk over `ready_walk` must stay a walk whatever the statistics say, so its plan is pinned here.
-- A call that finds nothing locks nothing either: a lock is written, and waits for the disk.
CREATE OR REPLACE FUNCTION workron.claim(_key uuid, _claims uuid[])
RETURNS TABLE (
    job bigint, claim uuid, attempt integer, failures integer, losses integer, fence bigint,
    namespace text, run text, name text, index integer, item jsonb, spec jsonb, inputs jsonb
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = workron, pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    _worker workron.worker;
    _passed bigint := workron.passed();
BEGIN
    SELECT * INTO _worker FROM workron.worker WHERE session = _key;
    -- Where walks are long, as a mark tells, looking would be one more of them.
    IF FOUND AND (workron.mark(_worker.pool)).job IS NULL AND NOT EXISTS (
        SELECT 1 FROM workron.ready r WHERE r.pool = _worker.pool AND NOT r.alone
        UNION ALL SELECT 1 FROM workron.ready r WHERE r.pool = _worker.pool AND r.alone
        UNION ALL SELECT 1 FROM workron.running r WHERE r.claim = ANY (_claims)
        UNION ALL SELECT 1 FROM workron.arrival
    ) THEN
        -- Who had to pass much leaves a mark.
        IF workron.passed() - _passed < 1000 THEN
            RETURN;
        END IF;
    END IF;
    _worker := workron.session(_key);
    IF workron.take(_worker, _claims) THEN
        RETURN QUERY SELECT * FROM workron.claimed(_worker.id, _claims);
    END IF;
END
$$;
