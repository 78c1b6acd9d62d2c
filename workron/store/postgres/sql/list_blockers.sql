-- list_blockers: what a job waits for, unfinished upstreams first; a group waits for its members.
CREATE OR REPLACE FUNCTION workron.list_blockers(_job bigint)
RETURNS TABLE (
    job bigint, kind text, name text, index integer, condition text, state text
)
LANGUAGE sql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
    WITH whole AS MATERIALIZED (
        SELECT g.id, r.last FROM workron.job g JOIN workron.run r ON r.id = g.run WHERE g.id = _job
    )
    SELECT up.job, up.kind, up.name, up.index, up.condition, up.state
    FROM (
        SELECT p.id AS job, p.kind, p.name, p.index, e.condition, workron.state_of(p.id) AS state
        FROM workron.edge e JOIN workron.job p ON p.id = e.parent
        WHERE e.child = _job
        UNION ALL
        SELECT NULL, u.kind, u.name, NULL, u.condition, NULL
        FROM workron.unbound u WHERE u.child = _job
        UNION ALL
        SELECT m.id, m.kind, m.name, m.index, m.group_condition, workron.state_of(m.id)
        FROM whole g JOIN workron.job m ON m.id BETWEEN g.id + 1 AND g.last AND m.group_id = g.id
    ) up
    ORDER BY up.state IN ('Succeeded', 'Failed', 'Cancelled', 'Skipped') NULLS FIRST, up.job
$$;
