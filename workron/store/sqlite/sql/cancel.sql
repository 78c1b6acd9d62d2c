-- cancel: end all of a run that does not run, mark what runs.
-- Waiting -> Cancelled (cancel)
-- Queued -> Cancelled (cancel)

-- name: update_run
-- From here on nothing of it becomes ready. Asked again, it is granted again.
UPDATE run SET cancelled = 1
WHERE id = :run AND (cancelled OR NOT EXISTS (SELECT 1 FROM done WHERE done.job = :run))

-- name: signal_running
-- Every verb that ends a claim obeys.
UPDATE running SET signal = 'Cancel'
WHERE job BETWEEN :run AND :last AND signal IS NOT 'Cancel'

-- name: select_ready
-- A bounded number, as in the two that follow.
INSERT INTO temp.ended_job (job, state, attempts, failures, losses)
SELECT job, 'Cancelled', attempts, failures, losses
FROM ready WHERE job BETWEEN :run AND :last ORDER BY job LIMIT :limit

-- name: select_deferred
-- Backoffs and starts to come.
INSERT INTO temp.ended_job (job, state, attempts, failures, losses)
SELECT job, 'Cancelled', attempts, failures, losses
FROM deferred WHERE job BETWEEN :run AND :last ORDER BY job LIMIT :limit

-- name: select_waiting
-- Commands only: a group ends when its last running member has.
INSERT INTO temp.ended_job (job, state, attempts, failures, losses)
SELECT waiting.job, 'Cancelled', waiting.attempts, waiting.failures, waiting.losses
FROM waiting CROSS JOIN job ON job.id = waiting.job
WHERE waiting.job BETWEEN :run AND :last AND job.kind = 'Job'
ORDER BY waiting.job LIMIT :limit
