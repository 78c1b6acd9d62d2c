-- enrolled: the pools that the operator has let workers into.

-- name: enrolled
-- Here its tokens are all that tells.
SELECT DISTINCT pool.namespace, pool.name
FROM token JOIN pool ON pool.id = token.pool
WHERE token.operators
