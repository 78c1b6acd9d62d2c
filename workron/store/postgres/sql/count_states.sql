-- count_states: count a run's jobs by state, without groups.
CREATE OR REPLACE FUNCTION workron.count_states(_run bigint)
RETURNS TABLE (state text, count integer)
LANGUAGE sql STABLE
AS $$
    SELECT l.state, count(*)::integer AS count
    FROM workron.run r
    CROSS JOIN LATERAL (
        SELECT job, state FROM workron.job_location WHERE job BETWEEN r.id AND r.last OFFSET 0
    ) l
    -- OFFSET 0 keeps it a lookup by key for each job, also in a plan made when there were few.
    CROSS JOIN LATERAL (SELECT 1 FROM workron.job WHERE id = l.job AND kind = 'Job' OFFSET 0) j
    WHERE r.id = _run
    GROUP BY l.state
$$;
