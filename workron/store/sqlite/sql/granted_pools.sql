-- granted_pools: the pools that the operator has let workers into.

-- name: granted_pools
-- Here its tokens are all that tells.
SELECT DISTINCT pool.namespace, pool.name
FROM token JOIN pool ON pool.id = token.pool
WHERE token.granted
