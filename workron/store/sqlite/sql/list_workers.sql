-- list_workers: list all workers with the number of claims that they hold.
SELECT worker.id AS worker, pool.namespace, pool.name AS pool, worker.name, worker.slots,
       worker.draining AS is_draining, (SELECT count(*) FROM running WHERE running.worker = worker.id) AS claims
FROM worker JOIN pool ON pool.id = worker.pool
ORDER BY worker.id
