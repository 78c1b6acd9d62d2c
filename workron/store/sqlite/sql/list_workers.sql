-- list_workers: every worker, its pool, how many claims it holds, and whether it takes more.

-- name: list_workers
-- The dead are among them until their claims are taken back.
SELECT worker.id AS worker, pool.namespace, pool.name AS pool, worker.name, worker.slots,
       worker.draining, (SELECT count(*) FROM running WHERE running.worker = worker.id) AS claims
FROM worker JOIN pool ON pool.id = worker.pool
ORDER BY worker.id
