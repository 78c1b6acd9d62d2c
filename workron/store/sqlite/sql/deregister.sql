-- deregister: delete a worker and release the claims that it holds.
-- Running -> Queued (release)

-- name: select_claims
-- All its claims.
INSERT INTO temp.selected_job (job) SELECT job FROM running WHERE worker = :worker

-- name: delete_worker
-- Its session key is invalid from here on.
DELETE FROM worker WHERE id = :worker
