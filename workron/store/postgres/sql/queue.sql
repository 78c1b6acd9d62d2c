-- queue: ready jobs by namespace and pool.
SELECT p.namespace, p.name, count(*)::integer AS count
FROM workron.ready r JOIN workron.pool p ON p.id = r.pool
GROUP BY p.namespace, p.name;
