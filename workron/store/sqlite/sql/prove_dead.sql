-- prove_dead: let go the jobs that waited for proof of a worker's death, or of an older boot's of its
-- name: one process at a time has a name.
-- Waiting -> Queued (ready)

-- name: tell
-- Its id lasts beyond its row.
INSERT INTO temp.told (child, ends, verdict)
SELECT job, 1, 0 FROM missing WHERE worker = :worker OR (worker < :worker AND pool = :pool AND name = :name)

-- name: prove
-- So that none is told twice.
UPDATE waiting SET unproven = 0 WHERE job IN (SELECT child FROM temp.told)

-- name: forget
-- The proof is given once.
DELETE FROM missing WHERE job IN (SELECT child FROM temp.told)

-- name: freed
-- Whom the proof lets go.
SELECT child AS job FROM temp.told ORDER BY child
