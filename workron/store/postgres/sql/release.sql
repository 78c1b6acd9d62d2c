-- release: hand claims back that this worker will not end; nothing is counted, unless they are lost.
-- Running -> Queued (release)
-- Running -> Queued (reap)
-- Running -> Failed (fail)
-- Those that were lost with what ran them are charged as when a worker vanishes: one that fell alone
-- a loss, those that fell together nothing, but each is tried alone next.
CREATE OR REPLACE FUNCTION workron.release(
    _key uuid, _claims uuid[], _fences bigint[], _lost text DEFAULT NULL
) RETURNS TABLE (answer text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = workron, pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    _worker workron.worker := workron.session(_key);
    _jobs bigint[];
    _held uuid[];
BEGIN
    IF _lost NOT IN ('Alone', 'Together') THEN
        PERFORM workron.refuse('lost', 'Alone, Together or nothing');
    END IF;
    SELECT array_agg(job), array_agg(claim) INTO _jobs, _held FROM (
        SELECT r.job, r.claim
        FROM unnest(_claims, _fences) AS named(claim, fence)
        JOIN workron.running r ON r.claim = named.claim AND r.fence = named.fence
        WHERE r.worker = _worker.id ORDER BY r.job FOR UPDATE OF r
    ) mine;
    PERFORM workron.give_back(_jobs, CASE WHEN _lost IS NULL THEN 'Released' ELSE 'Lost' END,
                              (coalesce(_lost, '') = 'Alone')::integer,
                              coalesce(_lost, '') = 'Together', true);
    RETURN QUERY
    SELECT CASE WHEN c.claim = ANY (_held) THEN 'accepted'
                WHEN (SELECT true FROM workron.attempt a WHERE a.claim = c.claim
                      AND a.outcome = 'Released' LIMIT 1) THEN 'already'
                ELSE 'stale' END
    FROM unnest(_claims) WITH ORDINALITY AS c(claim, number) ORDER BY c.number;
END
$$;
