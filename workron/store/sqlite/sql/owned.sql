-- owned: some roots that were made from objects of a cluster and have not ended.

-- name: owned
-- In order of their ids, so that the next call goes on behind the last.
SELECT root.id AS root, root.uid, root.kind, root.namespace, root.name, root.generation,
       root.submitted_at, 0 AS has_ended
FROM root
WHERE root.id > :after AND root.generation IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM done WHERE done.job = root.id)
ORDER BY root.id LIMIT :limit
