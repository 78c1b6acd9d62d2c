-- blockers: what a job waits for, unfinished upstreams first; a group waits for its members.
SELECT up.job, up.kind, up.name, up.index, up.condition, up.state
FROM (
    SELECT p.id AS job, p.kind, p.name, p.index, e.condition, workron.state_of(p.id) AS state
    FROM workron.edge e JOIN workron.job p ON p.id = e.parent
    WHERE e.child = $1
    UNION ALL
    SELECT NULL, u.kind, u.name, NULL, u.condition, NULL FROM workron.unbound u WHERE u.child = $1
    UNION ALL
    SELECT m.id, m.kind, m.name, m.index, m.bearing, workron.state_of(m.id)
    FROM workron.root r JOIN workron.job g ON g.root = r.id AND g.id = $1
    JOIN workron.job m ON m.id BETWEEN g.id + 1 AND r.last AND m.member_of = g.id
) up
ORDER BY up.state IN ('Succeeded', 'Failed', 'Cancelled', 'Skipped') NULLS FIRST, up.job;
