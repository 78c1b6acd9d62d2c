-- list_failures: list the jobs of a run that failed first, without groups.
CREATE OR REPLACE FUNCTION workron.list_failures(_run bigint, _limit integer)
RETURNS TABLE (job bigint, name text, index integer, reason text, message text, exit_code integer)
LANGUAGE sql STABLE
AS $$
    SELECT d.job, j.name, j.index, d.reason, d.message, d.exit_code
    FROM workron.run r
    JOIN workron.done d ON d.job BETWEEN r.id AND r.last
    -- OFFSET 0 keeps it a lookup by key for each job, also in a plan made when there were few.
    CROSS JOIN LATERAL (SELECT name, index FROM workron.job WHERE id = d.job AND kind = 'Job' OFFSET 0) j
    WHERE r.id = _run AND d.state = 'Failed'
    ORDER BY d.finished_at, d.job LIMIT _limit
$$;
