-- find: the newest root of a name.
SELECT r.id AS root, r.last, r.namespace, r.kind, r.name, r.uid, r.digest, r.submitted_at, r.metadata
FROM workron.name n JOIN workron.root r ON r.id = n.root
WHERE n.namespace = $1 AND n.kind = $2 AND n.name = $3;
