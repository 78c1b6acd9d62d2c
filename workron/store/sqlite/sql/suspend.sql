-- suspend: suspend a bounded number of a run's queued jobs, and signal its running ones.
-- Queued -> Waiting (suspend)

-- name: update_run
-- From here on nothing of the run becomes ready; a cancelled run cannot be suspended.
UPDATE run SET suspended = 1
WHERE id = :run AND NOT cancelled AND NOT EXISTS (SELECT 1 FROM done WHERE done.job = :run)

-- name: signal_running
-- They are suspended when their attempt ends; a stronger signal stays.
UPDATE running SET signal = 'Suspend' WHERE job BETWEEN :run AND :last AND signal IS NULL

-- name: select_{table} (ready, deferred)
-- Enqueue moves jobs of a suspended run to `waiting`. A suspension ends a backoff; a scheduled start is
-- looked up again by resume.
INSERT INTO temp.unblocked_job (job, priority, attempts, failures, losses, fence, alone)
SELECT job, priority, attempts, failures, losses, fence, alone
FROM {table} WHERE job BETWEEN :run AND :last ORDER BY job LIMIT :limit

-- name: delete_{table} (ready, deferred)
-- In the same transaction.
DELETE FROM {table} WHERE job IN (SELECT job FROM temp.unblocked_job)

-- name: suspend_waiting
-- They wait for one thing more; groups wait for their members.
UPDATE waiting SET suspended = 1, remaining = remaining + 1
WHERE job IN (
    SELECT waiting.job FROM waiting CROSS JOIN job ON job.id = waiting.job
    WHERE waiting.job BETWEEN :run AND :last AND NOT waiting.suspended AND job.kind = 'Job'
    ORDER BY waiting.job LIMIT :limit
)
