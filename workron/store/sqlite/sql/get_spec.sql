-- get_spec: get the spec of a job.
SELECT spec.body FROM job CROSS JOIN spec ON spec.id = job.spec WHERE job.id = :job
