-- owned: some roots that were made from objects of a cluster and have not ended.

-- name: owned
-- In order of their ids, so that the next call goes on behind the last. A root ends last of all its
-- jobs. So this goes from one job that has not ended to its root, and on behind the last job of that.
WITH RECURSIVE walk (root, last) AS (
    SELECT 0, :after
    UNION ALL
    SELECT root.id, root.last
    FROM walk CROSS JOIN root ON root.id = (
        SELECT max(before.id) FROM root AS before WHERE before.id <= (
            SELECT min(job) FROM (
                SELECT min(job) AS job FROM waiting WHERE job > walk.last
                UNION ALL SELECT min(job) FROM ready WHERE job > walk.last
                UNION ALL SELECT min(job) FROM deferred WHERE job > walk.last
                UNION ALL SELECT min(job) FROM running WHERE job > walk.last)))
    WHERE root.last > walk.last
)
SELECT root.id AS root, root.uid, root.kind, root.namespace, root.name, root.generation,
       root.submitted_at, 0 AS has_ended
FROM walk CROSS JOIN root ON root.id = walk.root
WHERE root.id > :after AND root.generation IS NOT NULL
LIMIT :limit
