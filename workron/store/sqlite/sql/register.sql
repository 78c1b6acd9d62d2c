-- register: enter a worker under its pool's token, and give it the key that its other verbs need.

-- name: find_pool
-- Which pool a token opens.
SELECT pool.id, pool.lease_seconds, pool.namespace, pool.name
FROM token JOIN pool ON pool.id = token.pool
WHERE token.hash = :hash AND token.expires > :now

-- name: find_session
-- A repeated registration, its answer lost, gets what the first one got.
SELECT id, session, lease_seconds FROM worker WHERE pool = :pool AND name = :name AND boot = :boot

-- name: insert_worker
-- The row that proves life from now on.
INSERT INTO worker (session, pool, name, boot, slots, lease_seconds, registered_at, seen_at)
VALUES (:session, :pool, :name, :boot, :slots, :lease, :now, :now)
