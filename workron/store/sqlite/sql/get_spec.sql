-- get_spec: get the spec of a job.

-- name: get_spec
-- No row: the job is unknown.
SELECT spec.body FROM job CROSS JOIN spec ON spec.id = job.spec WHERE job.id = :job
