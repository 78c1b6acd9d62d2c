-- list_workers: list all workers with the number of claims that they hold.

-- name: list_workers
-- Includes lost workers that were not reaped yet.
SELECT worker.id AS worker, pool.namespace, pool.name AS pool, worker.name, worker.slots,
       worker.draining, (SELECT count(*) FROM running WHERE running.worker = worker.id) AS claims
FROM worker JOIN pool ON pool.id = worker.pool
ORDER BY worker.id
