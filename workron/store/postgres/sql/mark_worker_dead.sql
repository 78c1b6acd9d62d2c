-- mark_worker_dead: unblock jobs that waited for proof that a worker is dead, or an older one of its
-- name: a name has one process at a time.
-- Waiting -> Queued (ready)
CREATE OR REPLACE FUNCTION workron.mark_worker_dead(_worker bigint, _pool integer, _name text) RETURNS TABLE (job bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _jobs bigint[];
BEGIN
    WITH proven AS (
        DELETE FROM workron.awaiting_proof
        WHERE worker = _worker OR (worker < _worker AND pool = _pool AND name = _name)
        RETURNING job
    )
    SELECT array_agg(job) INTO _jobs FROM proven;
    IF _jobs IS NULL THEN
        RETURN;
    END IF;
    PERFORM 1 FROM workron.waiting WHERE job = ANY (_jobs) ORDER BY job FOR UPDATE;
    UPDATE workron.waiting SET awaits_proof = false, remaining = remaining - 1
    WHERE job = ANY (_jobs) AND awaits_proof;
    PERFORM workron.resolve_waiting(_jobs);
    RETURN QUERY SELECT unnest(_jobs);
END
$$;
