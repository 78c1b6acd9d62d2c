-- claim: claim up to one ready job per claim id, by priority, then by age.
-- Queued -> Running (claim)
-- A call that finds nothing takes no lock: a row lock is written to the log, and its commit waits for
-- the disk.
CREATE OR REPLACE FUNCTION workron.claim(_key uuid, _claims uuid[])
RETURNS TABLE (
    job bigint, claim uuid, attempt integer, failures integer, losses integer, fence bigint,
    namespace text, run text, name text, index integer, item jsonb, spec jsonb, inputs jsonb,
    run_state text
)
LANGUAGE plpgsql SECURITY DEFINER
AS $$
#variable_conflict use_column
DECLARE
    _worker workron.worker;
    _start workron.scan_start;
    _is_idle boolean;
BEGIN
    SELECT * INTO _worker FROM workron.worker WHERE session = _key;
    _start := workron.read_scan_start(_worker.pool);
    _is_idle := FOUND AND NOT EXISTS (
        SELECT 1 FROM workron.ready r
        WHERE r.pool = _worker.pool AND NOT r.alone AND (-r.priority, r.job) >= (_start.rank, _start.job)
        UNION ALL SELECT 1 FROM workron.ready r WHERE r.pool = _worker.pool AND r.alone
        UNION ALL SELECT 1 FROM workron.running r WHERE r.claim = ANY (_claims)
        UNION ALL SELECT 1 FROM workron.pending_end
    );
    -- A statement of its own, which takes longer to begin.
    IF _is_idle AND _start.id IS NOT NULL THEN
        _is_idle := NOT EXISTS (SELECT 1 FROM workron.ready_before_start(_start, 1));
    END IF;
    IF _is_idle THEN
        RETURN;
    END IF;
    _worker := workron.lock_session(_key);
    IF workron.claim_ready(_worker, _claims, _start) THEN
        RETURN QUERY SELECT * FROM workron.claimed_jobs(_worker.id, _claims);
    END IF;
END
$$;
