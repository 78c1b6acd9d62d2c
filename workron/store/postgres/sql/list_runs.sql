-- list_runs: list runs, newest first; a null namespace means all.
SELECT r.id AS run, r.last AS last_job, r.namespace, r.kind, r.name, r.uid, r.digest, r.submitted_at, r.metadata,
       r.cancel_requested AS is_cancelled
FROM workron.run r
WHERE $1::text IS NULL OR r.namespace = $1
ORDER BY r.id DESC;
