-- known: the roots that were made from these objects of a cluster.

-- name: known
-- Those that were submitted otherwise are nobody's.
SELECT root.id AS root, root.uid, root.kind, root.namespace, root.name, root.generation,
       root.submitted_at, EXISTS (SELECT 1 FROM done WHERE done.job = root.id) AS has_ended
FROM json_each(:uids) CROSS JOIN root ON root.uid = json_each.value
WHERE root.generation IS NOT NULL
