-- list_blockers: list what a job waits for, unfinished upstreams first; a group waits for its
-- members. A name that was not submitted yet has neither job nor state.
WITH upstream AS (
    SELECT job.id AS job, job.kind, job.name, job."index", edge.condition, job_location.state
    FROM edge CROSS JOIN job ON job.id = edge.upstream CROSS JOIN job_location ON job_location.job = job.id
    WHERE edge.downstream = :job
    UNION ALL
    SELECT NULL, kind, name, NULL, condition, NULL FROM external_dependency WHERE downstream = :job
    UNION ALL
    SELECT member.id, member.kind, member.name, member."index", member.group_condition, job_location.state
    FROM job AS whole
    CROSS JOIN run ON run.id = whole.run
    CROSS JOIN job AS member ON member.id BETWEEN whole.id + 1 AND run.last
    CROSS JOIN job_location ON job_location.job = member.id
    WHERE whole.id = :job AND member.group_id = whole.id
)
SELECT * FROM upstream
ORDER BY coalesce(state IN ('Succeeded', 'Failed', 'Cancelled', 'Skipped'), 0), job
