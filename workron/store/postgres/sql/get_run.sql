-- get_run: get the run that a job belongs to.
SELECT r.id AS run, r.last AS last_job, r.namespace, r.kind, r.name, r.uid, r.digest, r.submitted_at, r.metadata,
       r.cancel_requested AS is_cancelled
FROM workron.job j JOIN workron.run r ON r.id = j.run
WHERE j.id = $1;
