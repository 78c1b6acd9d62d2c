-- expire: end jobs whose deadline has passed, and signal those that run.
-- Waiting -> Failed (expire)
-- Queued -> Failed (expire)

-- name: select_due
-- The oldest first.
INSERT INTO temp.selected_job (job)
SELECT job FROM deadline WHERE due <= :now ORDER BY due, job LIMIT :limit

-- name: signal_running
-- Cancel is stronger, Suspend is weaker.
UPDATE running SET signal = 'Expire'
WHERE job IN (SELECT job FROM temp.selected_job) AND signal IS NOT 'Cancel'

-- name: select_{table} (ready, deferred, waiting)
-- Whatever they wait for.
INSERT INTO temp.ended_job (job, state, reason, attempts, failures, losses)
SELECT {table}.job, 'Failed', 'DeadlineExceeded', attempts, failures, losses
FROM temp.selected_job CROSS JOIN {table} ON {table}.job = selected_job.job

-- name: delete_deadlines
-- A signal stays with its claim, so a deadline is handled once.
DELETE FROM deadline WHERE job IN (SELECT job FROM temp.selected_job)
