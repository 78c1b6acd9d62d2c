-- deregister: forget a worker that goes; what it still holds is released.
-- Running -> Queued (release)

-- name: select_claims
-- All that it holds.
INSERT INTO temp.selected_job (job) SELECT job FROM running WHERE worker = :worker

-- name: delete_worker
-- Its key opens nothing from here on.
DELETE FROM worker WHERE id = :worker
