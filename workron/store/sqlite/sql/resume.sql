-- resume: resume a bounded number of a run's suspended jobs.
-- Waiting -> Queued (ready)

-- name: update_run
-- From here on its jobs may become ready.
UPDATE run SET suspended = 0
WHERE id = :run AND NOT cancelled AND NOT EXISTS (SELECT 1 FROM done WHERE done.job = :run)

-- name: clear_signals
-- What returns from running is not suspended any more.
UPDATE running SET signal = NULL WHERE job BETWEEN :run AND :last AND signal = 'Suspend'

-- name: select_waiting
-- They wait for one thing less.
INSERT INTO temp.downstream_update (downstream, count, verdict)
SELECT job, 1, 0 FROM waiting WHERE job BETWEEN :run AND :last AND suspended
ORDER BY job LIMIT :limit

-- name: resume_waiting
-- So that each is counted down once.
UPDATE waiting SET suspended = 0 WHERE job IN (SELECT downstream FROM temp.downstream_update)
