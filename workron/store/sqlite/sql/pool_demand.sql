-- pool_demand: count ready jobs by pool, with the oldest one.
SELECT pool.namespace, pool.name, count(*) AS ready, min(ready.job) AS oldest
FROM ready JOIN pool ON pool.id = ready.pool GROUP BY pool.id
