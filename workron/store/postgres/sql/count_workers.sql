-- count_workers: count registered workers by namespace and pool.
SELECT p.namespace, p.name, count(*)::integer AS count
FROM workron.worker k JOIN workron.pool p ON p.id = k.pool
GROUP BY p.namespace, p.name;
