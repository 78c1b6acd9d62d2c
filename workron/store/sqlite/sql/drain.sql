-- drain: let a worker finish what it runs and claim no more.

-- name: drain
-- The worker learns it from its next heartbeat.
UPDATE worker SET draining = 1 WHERE id = :worker
