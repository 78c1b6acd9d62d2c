-- count_workers: workers that are entered, by namespace and pool.

-- name: count_workers
-- One that is dead is among them until its claims are taken back.
SELECT pool.namespace, pool.name, count(*) AS workers
FROM worker JOIN pool ON pool.id = worker.pool GROUP BY pool.id
