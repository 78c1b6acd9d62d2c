-- queue: ready jobs by namespace and pool.

-- name: queue
-- What a worker could claim now.
SELECT pool.namespace, pool.name, count(*) AS jobs
FROM ready JOIN pool ON pool.id = ready.pool GROUP BY pool.id
