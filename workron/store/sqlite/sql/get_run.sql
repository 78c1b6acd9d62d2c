-- get_run: get the run that a job belongs to.
SELECT run.*, run.id AS run, run.last AS last_job, run.cancel_requested AS is_cancelled
FROM job CROSS JOIN run ON run.id = job.run
WHERE job.id = :job
