-- count_workers: count registered workers by namespace and pool.
SELECT pool.namespace, pool.name, count(*) AS workers
FROM worker JOIN pool ON pool.id = worker.pool GROUP BY pool.id
