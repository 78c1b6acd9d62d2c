-- reap: take a worker's claims back and forget it, if its counter still is what the maintainer saw.
-- Running -> Queued (reap)
-- Running -> Waiting (suspend)
-- Running -> Failed (fail)

-- name: guard
-- A null counter says that its death is proven.
SELECT id, pool, name FROM worker WHERE id = :worker AND (:beats IS NULL OR beats = :beats)

-- name: pick
-- All that falls with it.
INSERT INTO temp.picked (job) SELECT job FROM running WHERE worker = :worker

-- name: forget
-- In the same transaction: a claim needs the row, so none can come after.
DELETE FROM worker WHERE id = :worker
