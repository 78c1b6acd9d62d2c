-- mark_worker_dead: unblock jobs that waited for proof that a worker is dead, or an older one of the
-- same name: only one process at a time has a name.
-- Waiting -> Queued (ready)

-- name: select_waiting
-- A worker id stays in `awaiting_proof` after the worker was deleted.
INSERT INTO temp.downstream_update (downstream, count, verdict)
SELECT job, 1, 0 FROM awaiting_proof WHERE worker = :worker OR (worker < :worker AND pool = :pool AND name = :name)

-- name: clear_awaits_proof
-- So that each is counted down once.
UPDATE waiting SET awaits_proof = 0 WHERE job IN (SELECT downstream FROM temp.downstream_update)

-- name: delete_awaiting_proof
-- The proof is given once.
DELETE FROM awaiting_proof WHERE job IN (SELECT downstream FROM temp.downstream_update)

-- name: unblocked
-- The jobs that wait for this proof no more.
SELECT downstream AS job FROM temp.downstream_update ORDER BY downstream
