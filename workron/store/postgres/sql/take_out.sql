-- take_out: remove the given jobs from whichever place they wait in.
-- Place after place, and by id in each, as a sweep does: so the two never lock crosswise.
CREATE OR REPLACE FUNCTION workron.take_out(_jobs bigint[])
RETURNS TABLE (job bigint, attempts integer, failures integer, losses integer)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    PERFORM 1 FROM workron.ready p WHERE p.job = ANY (_jobs) ORDER BY p.job FOR UPDATE;
    RETURN QUERY DELETE FROM workron.ready p WHERE p.job = ANY (_jobs)
        RETURNING p.job, p.attempts, p.failures, p.losses;
    PERFORM 1 FROM workron.deferred p WHERE p.job = ANY (_jobs) ORDER BY p.job FOR UPDATE;
    RETURN QUERY DELETE FROM workron.deferred p WHERE p.job = ANY (_jobs)
        RETURNING p.job, p.attempts, p.failures, p.losses;
    PERFORM 1 FROM workron.waiting p WHERE p.job = ANY (_jobs) ORDER BY p.job FOR UPDATE;
    RETURN QUERY DELETE FROM workron.waiting p WHERE p.job = ANY (_jobs)
        RETURNING p.job, p.attempts, p.failures, p.losses;
    DELETE FROM workron.unbound u WHERE u.child = ANY (_jobs);
    DELETE FROM workron.missing m WHERE m.job = ANY (_jobs);
END
$$;
