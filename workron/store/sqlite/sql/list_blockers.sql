-- list_blockers: what a job waits for, unfinished upstreams first; a group waits for its members.

-- name: list_blockers
-- A name that is not bound yet has neither job nor state.
WITH upstream AS (
    SELECT job.id AS job, job.kind, job.name, job."index", edge.condition, standing.state
    FROM edge CROSS JOIN job ON job.id = edge.parent CROSS JOIN standing ON standing.job = job.id
    WHERE edge.child = :job
    UNION ALL
    SELECT NULL, kind, name, NULL, condition, NULL FROM unbound WHERE child = :job
    UNION ALL
    SELECT member.id, member.kind, member.name, member."index", member.group_condition, standing.state
    FROM job AS whole
    CROSS JOIN run ON run.id = whole.run
    CROSS JOIN job AS member ON member.id BETWEEN whole.id + 1 AND run.last
    CROSS JOIN standing ON standing.job = member.id
    WHERE whole.id = :job AND member.group_id = whole.id
)
SELECT * FROM upstream
ORDER BY coalesce(state IN ('Succeeded', 'Failed', 'Cancelled', 'Skipped'), 0), job
