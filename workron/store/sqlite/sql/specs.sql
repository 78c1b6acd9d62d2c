-- specs: the spec of each job of a root.

-- name: jobs
-- Which spec each has.
SELECT job.id AS job, job.spec
FROM root CROSS JOIN job ON job.id BETWEEN root.id AND root.last
WHERE root.id = :root ORDER BY job.id

-- name: bodies
-- Each body once.
SELECT spec.id, spec.body
FROM spec WHERE spec.id IN (
    SELECT job.spec FROM root CROSS JOIN job ON job.id BETWEEN root.id AND root.last
    WHERE root.id = :root)
