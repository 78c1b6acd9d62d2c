-- find_by_uid: find the runs that were made from these cluster objects.
SELECT r.id AS run, r.uid, r.kind, r.namespace, r.name, r.generation, r.submitted_at,
       EXISTS (SELECT 1 FROM workron.done d WHERE d.job = r.id) AS has_ended
FROM workron.run r
WHERE r.uid = ANY ($1) AND r.generation IS NOT NULL;
