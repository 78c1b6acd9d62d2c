-- reap: requeue a worker's claims and delete it, if its heartbeat counter is unchanged.
-- Running -> Queued (reap)
-- Running -> Waiting (suspend)
-- Running -> Failed (fail)

-- name: find_worker
-- A null counter says that the death is proven.
SELECT id, pool, name FROM worker WHERE id = :worker AND (:heartbeats IS NULL OR heartbeats = :heartbeats)

-- name: select_claims
-- All its claims.
INSERT INTO temp.selected_job (job) SELECT job FROM running WHERE worker = :worker

-- name: delete_worker
-- In the same transaction: a claim needs this row, so no later one is possible.
DELETE FROM worker WHERE id = :worker
