-- remove_from_queues: delete the given jobs from the tables in which they wait.
-- Table by table and in order of id, as bulk updates do, so that the two cannot deadlock.
CREATE OR REPLACE FUNCTION workron.remove_from_queues(_jobs bigint[])
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
    DELETE FROM workron.external_dependency u WHERE u.downstream = ANY (_jobs);
    DELETE FROM workron.awaiting_proof m WHERE m.job = ANY (_jobs);
END
$$;
