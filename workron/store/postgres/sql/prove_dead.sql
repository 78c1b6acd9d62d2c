-- prove_dead: let go the jobs that waited for proof of a worker's death, or of an older boot's of its
-- name: one process at a time has a name.
-- Waiting -> Queued (ready)
CREATE OR REPLACE FUNCTION workron.prove_dead(_worker bigint, _pool integer, _name text) RETURNS TABLE (job bigint)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _jobs bigint[];
BEGIN
    WITH proven AS (
        DELETE FROM workron.missing
        WHERE worker = _worker OR (worker < _worker AND pool = _pool AND name = _name)
        RETURNING job
    )
    SELECT array_agg(job) INTO _jobs FROM proven;
    IF _jobs IS NULL THEN
        RETURN;
    END IF;
    PERFORM 1 FROM workron.waiting WHERE job = ANY (_jobs) ORDER BY job FOR UPDATE;
    UPDATE workron.waiting SET unproven = false, remaining = remaining - 1
    WHERE job = ANY (_jobs) AND unproven;
    PERFORM workron.decide(_jobs);
    RETURN QUERY SELECT unnest(_jobs);
END
$$;
