-- register: register a worker in the pool of its token, and return its session key.

-- name: find_pool
-- The pool of a valid token.
SELECT pool.id, pool.lease_seconds, pool.namespace, pool.name
FROM token JOIN pool ON pool.id = token.pool
WHERE token.hash = :hash AND token.expires > :now

-- name: find_session
-- A repeated registration, whose answer was lost, gets the same session.
SELECT id, session, lease_seconds FROM worker WHERE pool = :pool AND name = :name AND boot = :boot

-- name: insert_worker
-- Its heartbeat counter starts at 0.
INSERT INTO worker (session, pool, name, boot, slots, lease_seconds, registered_at, seen_at)
VALUES (:session, :pool, :name, :boot, :slots, :lease, :now, :now)
