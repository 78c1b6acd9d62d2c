-- pool_demand: of each pool that has ready jobs how many they are, and the one that was submitted first.
SELECT p.namespace, p.name, count(*)::integer AS ready, min(r.job) AS oldest
FROM workron.ready r JOIN workron.pool p ON p.id = r.pool
GROUP BY p.namespace, p.name;
