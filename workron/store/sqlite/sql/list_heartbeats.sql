-- list_heartbeats: every worker, its counter, and how long its claims outlive its last beat.

-- name: list_heartbeats
-- Who stands still from look to look is reaped after a lease.
SELECT worker.id, worker.heartbeats, worker.lease_seconds, worker.name, worker.boot
FROM worker
ORDER BY worker.id
