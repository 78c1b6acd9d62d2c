-- owned: some roots that were made from objects of a cluster and have not ended, in order of their ids.
SELECT r.id AS root, r.uid, r.kind, r.namespace, r.name, r.generation, r.submitted_at, false AS has_ended
FROM workron.root r
WHERE r.id > $2 AND r.generation IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM workron.done d WHERE d.job = r.id)
ORDER BY r.id LIMIT $1;
