-- list_specs: list the specs of a run's jobs.

-- name: jobs
-- The spec of each job.
SELECT job.id AS job, job.spec
FROM run CROSS JOIN job ON job.id BETWEEN run.id AND run.last
WHERE run.id = :run ORDER BY job.id

-- name: bodies
-- Each text once.
SELECT spec.id, spec.body
FROM spec WHERE spec.id IN (
    SELECT job.spec FROM run CROSS JOIN job ON job.id BETWEEN run.id AND run.last
    WHERE run.id = :run)
