-- pool_demand: count ready jobs by pool, with the oldest one.
SELECT p.namespace, p.name, count(*)::integer AS ready, min(r.job) AS oldest
FROM workron.ready r JOIN workron.pool p ON p.id = r.pool
GROUP BY p.namespace, p.name;
