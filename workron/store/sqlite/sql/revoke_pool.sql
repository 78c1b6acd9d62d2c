-- revoke_pool: take back what `admit` gave, unless a worker of the pool is left.

-- name: find_worker
-- One that is left goes on until it ends.
SELECT 1 FROM worker JOIN pool ON pool.id = worker.pool
WHERE pool.namespace = :namespace AND pool.name = :name LIMIT 1

-- name: delete_token
-- Those that people were given stay good.
DELETE FROM token
WHERE granted AND pool = (SELECT id FROM pool WHERE namespace = :namespace AND name = :name)
