-- list_heartbeats: list all workers with their heartbeat counters.

-- name: list_heartbeats
-- A worker whose counter does not change for a lease is reaped.
SELECT worker.id, worker.heartbeats, worker.lease_seconds, worker.name, worker.boot
FROM worker
ORDER BY worker.id
