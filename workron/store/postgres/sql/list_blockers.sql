-- list_blockers: list what a job waits for, unfinished upstreams first; a group waits for its
-- members.
CREATE OR REPLACE FUNCTION workron.list_blockers(_job bigint)
RETURNS TABLE (
    job bigint, kind text, name text, index integer, condition text, state text
)
LANGUAGE sql STABLE
AS $$
    WITH this_group AS MATERIALIZED (
        SELECT g.id, r.last FROM workron.job g JOIN workron.run r ON r.id = g.run WHERE g.id = _job
    )
    SELECT up.job, up.kind, up.name, up.index, up.condition, up.state
    FROM (
        SELECT p.id AS job, p.kind, p.name, p.index, e.condition, workron.job_state(p.id) AS state
        FROM workron.edge e JOIN workron.job p ON p.id = e.upstream
        WHERE e.downstream = _job
        UNION ALL
        SELECT NULL, u.kind, u.name, NULL, u.condition, NULL
        FROM workron.external_dependency u WHERE u.downstream = _job
        UNION ALL
        SELECT m.id, m.kind, m.name, m.index, m.group_condition, workron.job_state(m.id)
        FROM this_group g JOIN workron.job m ON m.id BETWEEN g.id + 1 AND g.last AND m.group_id = g.id
    ) up
    ORDER BY up.state IN ('Succeeded', 'Failed', 'Cancelled', 'Skipped') NULLS FIRST, up.job
$$;
