-- reap: requeue a worker's claims and delete it, if its heartbeat counter is unchanged.
-- Running -> Queued (reap)
-- Running -> Waiting (suspend)
-- Running -> Failed (fail)

-- name: find_worker
-- A null counter says that the death is proven.
SELECT id, pool, name FROM worker WHERE id = :worker AND (:heartbeats IS NULL OR heartbeats = :heartbeats)
