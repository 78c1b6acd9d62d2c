-- find_run: find the newest run of a name.
SELECT r.id AS run, r.last AS last_job, r.namespace, r.kind, r.name, r.uid, r.digest, r.submitted_at, r.metadata,
       r.cancel_requested AS is_cancelled
FROM workron.name n JOIN workron.run r ON r.id = n.run
WHERE n.namespace = $1 AND n.kind = $2 AND n.name = $3;
