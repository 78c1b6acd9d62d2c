-- cancel: cancel a bounded number of a run's queued jobs, and signal its running ones.
-- Waiting -> Cancelled (cancel)
-- Queued -> Cancelled (cancel)

-- name: update_run
-- From here on nothing of the run becomes ready, except jobs of `finally`, which are cancelled by force
-- only. Repeating it succeeds.
UPDATE run SET cancelled = 1, cancel_requested = 1, suspended = 0, forced = max(forced, :force)
WHERE id = :run AND (cancelled OR NOT EXISTS (SELECT 1 FROM done WHERE done.job = :run))

-- name: signal_running
-- Every operation that ends a claim applies the signal.
UPDATE running SET signal = 'Cancel'
WHERE job BETWEEN :run AND :last AND signal IS NOT 'Cancel'

-- name: select_{table} (ready, deferred)
-- A bounded number, like the statement below.
INSERT INTO temp.ended_job (job, state, attempts, failures, losses)
SELECT job, 'Cancelled', attempts, failures, losses
FROM {table} WHERE job BETWEEN :run AND :last ORDER BY job LIMIT :limit

-- name: select_waiting
-- Without groups: a group ends when its last running member has ended.
INSERT INTO temp.ended_job (job, state, attempts, failures, losses)
SELECT waiting.job, 'Cancelled', waiting.attempts, waiting.failures, waiting.losses
FROM waiting CROSS JOIN job ON job.id = waiting.job
WHERE waiting.job BETWEEN :run AND :last AND job.kind = 'Job'
ORDER BY waiting.job LIMIT :limit
