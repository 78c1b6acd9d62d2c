-- suspend: suspend all of a run that does not run, mark what runs.
-- Queued -> Waiting (suspend)

-- name: update_run
-- From here on nothing of it becomes ready; a cancelled run has nothing to hold.
UPDATE run SET suspended = 1
WHERE id = :run AND NOT cancelled AND NOT EXISTS (SELECT 1 FROM done WHERE done.job = :run)

-- name: signal_running
-- What comes back from running is held then; a stronger mark stays.
UPDATE running SET signal = 'Suspend' WHERE job BETWEEN :run AND :last AND signal IS NULL

-- name: select_ready
-- On to place, which holds what belongs to a held run.
INSERT INTO temp.unblocked_job (job, priority, attempts, failures, losses, fence, alone)
SELECT job, priority, attempts, failures, losses, fence, alone
FROM ready WHERE job BETWEEN :run AND :last ORDER BY job LIMIT :limit

-- name: delete_ready
-- Nobody can claim them any more.
DELETE FROM ready WHERE job IN (SELECT job FROM temp.unblocked_job)

-- name: select_deferred
-- A hold outlasts a backoff; a start that lies ahead is looked up again on resume.
INSERT INTO temp.unblocked_job (job, priority, attempts, failures, losses, fence, alone)
SELECT job, priority, attempts, failures, losses, fence, alone
FROM deferred WHERE job BETWEEN :run AND :last ORDER BY job LIMIT :limit

-- name: delete_deferred
-- Promote must not find them.
DELETE FROM deferred WHERE job IN (SELECT job FROM temp.unblocked_job)

-- name: suspend_waiting
-- One more to wait for; groups are held by their members.
UPDATE waiting SET suspended = 1, remaining = remaining + 1
WHERE job IN (
    SELECT waiting.job FROM waiting CROSS JOIN job ON job.id = waiting.job
    WHERE waiting.job BETWEEN :run AND :last AND NOT waiting.suspended AND job.kind = 'Job'
    ORDER BY waiting.job LIMIT :limit
)
