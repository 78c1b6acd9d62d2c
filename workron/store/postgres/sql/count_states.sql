-- count_states: the commands of a run by state, groups not counted.
CREATE OR REPLACE FUNCTION workron.count_states(_run bigint)
RETURNS TABLE (state text, count integer)
LANGUAGE sql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
    SELECT p.state, count(*)::integer AS count
    FROM workron.run r
    CROSS JOIN LATERAL (
        SELECT job, 'Waiting' AS state FROM workron.waiting WHERE job BETWEEN r.id AND r.last
        UNION ALL SELECT job, 'Queued' FROM workron.ready WHERE job BETWEEN r.id AND r.last
        UNION ALL SELECT job, 'Waiting' FROM workron.deferred WHERE job BETWEEN r.id AND r.last
        UNION ALL SELECT job, 'Running' FROM workron.running WHERE job BETWEEN r.id AND r.last
        UNION ALL SELECT job, state FROM workron.done WHERE job BETWEEN r.id AND r.last
    ) p
    -- OFFSET has each look for its own job, also by a plan that was made when there were few.
    CROSS JOIN LATERAL (SELECT 1 FROM workron.job WHERE id = p.job AND kind = 'Job' OFFSET 0) j
    WHERE r.id = _run
    GROUP BY p.state
$$;
