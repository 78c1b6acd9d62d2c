-- list_workers: list all workers with the number of claims that they hold.
SELECT w.id AS worker, p.namespace, p.name AS pool, w.name, w.slots,
       coalesce(r.claims, 0)::integer AS claims, w.draining AS is_draining
FROM workron.worker w JOIN workron.pool p ON p.id = w.pool
LEFT JOIN (SELECT worker, count(*) AS claims FROM workron.running GROUP BY worker) r ON r.worker = w.id
ORDER BY w.id;
