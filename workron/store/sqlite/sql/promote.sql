-- promote: move deferred jobs that are due to ready.
-- Waiting -> Queued (ready)

-- name: select_due
-- The oldest first.
INSERT INTO temp.unblocked_job (job, priority, attempts, failures, losses, fence, alone)
SELECT job, priority, attempts, failures, losses, fence, alone
FROM deferred WHERE due <= :now ORDER BY due, job LIMIT :limit

-- name: delete_deferred
-- Enqueue inserts them into another table.
DELETE FROM deferred WHERE job IN (SELECT job FROM temp.unblocked_job)
