-- release: requeue claims that their worker returns; nothing is charged, unless they were lost.
-- Running -> Queued (release)
-- Running -> Queued (reap)
-- Running -> Failed (fail)
-- Lost claims are charged as by `reap`: a loss if it was the only one, else nothing, but each job
-- runs alone next.
CREATE OR REPLACE FUNCTION workron.release(
    _key uuid, _claims uuid[], _fences bigint[], _lost text DEFAULT NULL
) RETURNS TABLE (answer text)
LANGUAGE plpgsql SECURITY DEFINER
AS $$
#variable_conflict use_column
DECLARE
    _worker workron.worker := workron.lock_session(_key);
    _jobs bigint[];
    _running_row uuid[];
BEGIN
    IF _lost NOT IN ('Alone', 'Together') THEN
        PERFORM workron.reject_report('lost must be Alone, Together or null');
    END IF;
    SELECT array_agg(job), array_agg(claim) INTO _jobs, _running_row FROM (
        SELECT r.job, r.claim
        FROM unnest(_claims, _fences) AS named(claim, fence)
        JOIN workron.running r ON r.claim = named.claim AND r.fence = named.fence
        WHERE r.worker = _worker.id ORDER BY r.job FOR UPDATE OF r
    ) mine;
    PERFORM workron.requeue(_jobs, CASE WHEN _lost IS NULL THEN 'Released' ELSE 'Lost' END,
                              (coalesce(_lost, '') = 'Alone')::integer,
                              coalesce(_lost, '') = 'Together', true);
    RETURN QUERY
    SELECT CASE WHEN c.claim = ANY (_running_row) THEN 'accepted'
                WHEN (SELECT true FROM workron.attempt a WHERE a.claim = c.claim
                      AND a.outcome = 'Released' LIMIT 1) THEN 'already'
                ELSE 'stale' END
    FROM unnest(_claims) WITH ORDINALITY AS c(claim, number) ORDER BY c.number;
END
$$;
