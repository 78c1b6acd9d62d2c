-- get_spec: the spec of one job.

-- name: get_spec
-- No row: the job is not there.
SELECT spec.body FROM job CROSS JOIN spec ON spec.id = job.spec WHERE job.id = :job
