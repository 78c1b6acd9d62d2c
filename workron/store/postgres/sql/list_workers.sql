-- list_workers: every worker, its pool, how many claims it holds, and whether it takes more.
SELECT w.id AS worker, p.namespace, p.name AS pool, w.name, w.slots,
       coalesce(r.held, 0)::integer AS held, w.draining
FROM workron.worker w JOIN workron.pool p ON p.id = w.pool
LEFT JOIN (SELECT worker, count(*) AS held FROM workron.running GROUP BY worker) r ON r.worker = w.id
ORDER BY w.id;
