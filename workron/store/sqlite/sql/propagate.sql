-- propagate: select a bounded number of ends that were left over.
-- Waiting -> Queued (ready)
-- Waiting -> Skipped (skip)
-- Waiting -> Cancelled (cancel)
-- Waiting -> Succeeded (succeed)
-- Waiting -> Failed (fail)

-- name: select_unpropagated
-- They are propagated, not recorded again.
INSERT INTO temp.ended_job (job, state, reason, attempts, failures, losses)
SELECT done.job, done.state, done.reason, done.attempts, done.failures, done.losses
FROM (SELECT job FROM unpropagated ORDER BY job LIMIT :limit) AS oldest
CROSS JOIN done ON done.job = oldest.job

-- name: delete_unpropagated
-- In the transaction that propagates them.
DELETE FROM unpropagated WHERE job IN (SELECT job FROM temp.ended_job)
