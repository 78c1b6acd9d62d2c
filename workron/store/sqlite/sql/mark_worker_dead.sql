-- mark_worker_dead: let go the jobs that waited for proof of a worker's death, or of an older boot's of its
-- name: one process at a time has a name.
-- Waiting -> Queued (ready)

-- name: select_waiting
-- Its id lasts beyond its row.
INSERT INTO temp.downstream_update (downstream, count, verdict)
SELECT job, 1, 0 FROM awaiting_proof WHERE worker = :worker OR (worker < :worker AND pool = :pool AND name = :name)

-- name: clear_awaits_proof
-- So that none is told twice.
UPDATE waiting SET awaits_proof = 0 WHERE job IN (SELECT downstream FROM temp.downstream_update)

-- name: delete_awaiting_proof
-- The proof is given once.
DELETE FROM awaiting_proof WHERE job IN (SELECT downstream FROM temp.downstream_update)

-- name: unblocked
-- Whom the proof lets go.
SELECT downstream AS job FROM temp.downstream_update ORDER BY downstream
