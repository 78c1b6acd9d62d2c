-- list_specs: the spec of each job of a run.

-- name: jobs
-- Which spec each has.
SELECT job.id AS job, job.spec
FROM run CROSS JOIN job ON job.id BETWEEN run.id AND run.last
WHERE run.id = :run ORDER BY job.id

-- name: bodies
-- Each body once.
SELECT spec.id, spec.body
FROM spec WHERE spec.id IN (
    SELECT job.spec FROM run CROSS JOIN job ON job.id BETWEEN run.id AND run.last
    WHERE run.id = :run)
