-- get_spec: get the spec of a job.
SELECT s.body FROM workron.job j JOIN workron.spec s ON s.id = j.spec WHERE j.id = $1;
