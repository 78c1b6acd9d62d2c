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
    SELECT up.job, coalesce(up.kind, j.kind), coalesce(up.name, j.name), j.index, up.condition, j.state
    FROM (
        SELECT upstream AS job, NULL::text AS kind, NULL::text AS name, condition
        FROM workron.edge WHERE downstream = _job
        UNION ALL
        SELECT NULL, u.kind, u.name, u.condition
        FROM workron.external_dependency u WHERE u.downstream = _job
        UNION ALL
        SELECT m.id, NULL, NULL, m.group_condition
        FROM this_group g JOIN workron.job m ON m.id BETWEEN g.id + 1 AND g.last AND m.group_id = g.id
    ) up LEFT JOIN LATERAL (SELECT * FROM workron.get_jobs(ARRAY[up.job])) j ON up.job IS NOT NULL
    ORDER BY j.state IN ('Succeeded', 'Failed', 'Cancelled', 'Skipped') NULLS FIRST, up.job
$$;
