-- promote: queue deferred jobs that are due.
-- Waiting -> Queued (ready)

-- name: select_due
-- The oldest first.
INSERT INTO temp.unblocked_job (job, priority, attempts, failures, losses, fence, alone)
SELECT job, priority, attempts, failures, losses, fence, alone
FROM deferred WHERE due <= :now ORDER BY due, job LIMIT :limit

-- name: delete_deferred
-- Place puts them on.
DELETE FROM deferred WHERE job IN (SELECT job FROM temp.unblocked_job)
