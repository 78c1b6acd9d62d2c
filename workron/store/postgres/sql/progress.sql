-- progress: the commands of a root by state, groups not counted.
CREATE OR REPLACE FUNCTION workron.progress(_root bigint)
RETURNS TABLE (state text, count integer)
LANGUAGE sql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
    SELECT p.state, count(*)::integer AS count
    FROM workron.root r
    CROSS JOIN LATERAL (
        SELECT job, 'Waiting' AS state FROM workron.waiting WHERE job BETWEEN r.id AND r.last
        UNION ALL SELECT job, 'Queued' FROM workron.ready WHERE job BETWEEN r.id AND r.last
        UNION ALL SELECT job, 'Waiting' FROM workron.deferred WHERE job BETWEEN r.id AND r.last
        UNION ALL SELECT job, 'Running' FROM workron.running WHERE job BETWEEN r.id AND r.last
        UNION ALL SELECT job, state FROM workron.done WHERE job BETWEEN r.id AND r.last
    ) p
    JOIN workron.job j ON j.id = p.job AND j.kind = 'Job'
    WHERE r.id = _root
    GROUP BY p.state
$$;
