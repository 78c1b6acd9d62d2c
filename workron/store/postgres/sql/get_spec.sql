-- get_spec: the spec of one job.
SELECT s.body FROM workron.job j JOIN workron.spec s ON s.id = j.spec WHERE j.id = $1;
