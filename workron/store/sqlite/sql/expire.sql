-- expire: end jobs whose deadline has passed, and signal those that run.
-- Waiting -> Failed (expire)
-- Queued -> Failed (expire)
-- A workflow whose deadline passes is cancelled; the maintainer carries that out.

-- name: select_due
-- The oldest first.
INSERT INTO temp.selected_job (job)
SELECT job FROM deadline WHERE due <= :now ORDER BY due, job LIMIT :limit

-- name: expire_runs
-- A run whose tasks have ended keeps its verdict, and so does one that was cancelled before. The job
-- after the run is the group of its tasks, in a workflow with `finally`.
UPDATE run SET expired = 1, cancelled = 1, suspended = 0
WHERE id IN (SELECT job FROM temp.selected_job) AND kind = 'Workflow' AND NOT cancelled
  AND NOT EXISTS (SELECT 1 FROM done
                  WHERE done.job = CASE WHEN run.finally_from IS NULL THEN run.id ELSE run.id + 1 END)

-- name: request_cancellations
-- Of these runs.
INSERT INTO bulk_update (run, operation)
SELECT id, 'cancel' FROM run WHERE id IN (SELECT job FROM temp.selected_job) AND expired
ON CONFLICT (run) DO UPDATE SET operation = excluded.operation

-- name: signal_running
-- Cancel is stronger, Suspend is weaker.
UPDATE running SET signal = 'Expire'
WHERE job IN (SELECT job FROM temp.selected_job) AND signal IS NOT 'Cancel'

-- name: select_{table} (ready, deferred, waiting)
-- Whatever they wait for.
INSERT INTO temp.ended_job (job, state, reason, attempts, failures, losses)
SELECT {table}.job, 'Failed', 'DeadlineExceeded', attempts, failures, losses
FROM temp.selected_job
CROSS JOIN {table} ON {table}.job = selected_job.job
CROSS JOIN job ON job.id = selected_job.job
WHERE job.kind = 'Job'

-- name: delete_deadlines
-- A signal stays with its claim, so a deadline is handled once.
DELETE FROM deadline WHERE job IN (SELECT job FROM temp.selected_job)
