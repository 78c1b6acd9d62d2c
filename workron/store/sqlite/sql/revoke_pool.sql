-- revoke_pool: undo `grant_pool`, unless the pool has workers; returns what is left to do.

-- name: find_worker
-- A pool with workers is not revoked.
SELECT 1 FROM worker JOIN pool ON pool.id = worker.pool
WHERE pool.namespace = :namespace AND pool.name = :name LIMIT 1

-- name: delete_token
-- Tokens of `ensure_pool` stay valid.
DELETE FROM token
WHERE granted AND pool = (SELECT id FROM pool WHERE namespace = :namespace AND name = :name)
