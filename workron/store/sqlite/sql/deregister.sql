-- deregister: forget a worker that goes; what it still holds is released.
-- Running -> Queued (release)

-- name: pick
-- All that it holds.
INSERT INTO temp.picked (job) SELECT job FROM running WHERE worker = :worker

-- name: forget
-- Its key opens nothing from here on.
DELETE FROM worker WHERE id = :worker
