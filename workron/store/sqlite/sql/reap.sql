-- reap: take a worker's claims back and forget it, if its counter still is what the maintainer saw.
-- Running -> Queued (reap)
-- Running -> Waiting (suspend)
-- Running -> Failed (fail)

-- name: find_worker
-- A null counter says that its death is proven.
SELECT id, pool, name FROM worker WHERE id = :worker AND (:heartbeats IS NULL OR heartbeats = :heartbeats)

-- name: select_claims
-- All that falls with it.
INSERT INTO temp.selected_job (job) SELECT job FROM running WHERE worker = :worker

-- name: delete_worker
-- In the same transaction: a claim needs the row, so none can come after.
DELETE FROM worker WHERE id = :worker
