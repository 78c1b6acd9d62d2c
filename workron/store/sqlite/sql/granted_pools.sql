-- granted_pools: list the pools that were granted and not revoked. SQLite has no roles, so the
-- tokens show it.
SELECT DISTINCT pool.namespace, pool.name
FROM token JOIN pool ON pool.id = token.pool
WHERE token.granted
