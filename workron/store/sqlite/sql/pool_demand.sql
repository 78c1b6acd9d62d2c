-- pool_demand: of each pool that has ready jobs how many they are, and the one that was submitted first.

-- name: pool_demand
-- Ids go by the time of submission.
SELECT pool.namespace, pool.name, count(*) AS ready, min(ready.job) AS oldest
FROM ready JOIN pool ON pool.id = ready.pool GROUP BY pool.id
