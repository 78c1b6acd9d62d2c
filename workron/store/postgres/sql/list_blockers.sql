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
    ), upstream AS (
        SELECT j.job, j.kind, j.name, j.index, coalesce(
                   (SELECT e.condition FROM workron.edge e WHERE e.upstream = j.job AND e.downstream = _job),
                   (SELECT m.group_condition FROM workron.job m WHERE m.id = j.job)) AS condition, j.state
        FROM workron.get_jobs(ARRAY(
            SELECT e.upstream FROM workron.edge e WHERE e.downstream = _job
            UNION ALL
            SELECT m.id FROM this_group g
            JOIN workron.job m ON m.id BETWEEN g.id + 1 AND g.last AND m.group_id = g.id
        )) j
        UNION ALL
        SELECT NULL, u.kind, u.name, NULL, u.condition, NULL
        FROM workron.external_dependency u WHERE u.downstream = _job
    )
    SELECT * FROM upstream
    ORDER BY state IN ('Succeeded', 'Failed', 'Cancelled', 'Skipped') NULLS FIRST, job
$$;
