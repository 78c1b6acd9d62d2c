-- expire: end jobs whose deadline has passed; mark those that run.
-- Waiting -> Failed (expire)
-- Queued -> Failed (expire)

-- name: pick
-- The oldest first.
INSERT INTO temp.picked (job)
SELECT job FROM deadline WHERE due <= :now ORDER BY due, job LIMIT :limit

-- name: mark
-- Cancel is stronger, Hold is weaker.
UPDATE running SET mark = 'Expire'
WHERE job IN (SELECT job FROM temp.picked) AND mark IS NOT 'Cancel'

-- name: take_ready
-- Claimable until now.
INSERT INTO temp.ended (job, state, reason, attempts, failures, losses)
SELECT ready.job, 'Failed', 'DeadlineExceeded', attempts, failures, losses
FROM temp.picked CROSS JOIN ready ON ready.job = picked.job

-- name: take_deferred
-- Between two tries, or before its start.
INSERT INTO temp.ended (job, state, reason, attempts, failures, losses)
SELECT deferred.job, 'Failed', 'DeadlineExceeded', attempts, failures, losses
FROM temp.picked CROSS JOIN deferred ON deferred.job = picked.job

-- name: take_waiting
-- Whatever it waits for.
INSERT INTO temp.ended (job, state, reason, attempts, failures, losses)
SELECT waiting.job, 'Failed', 'DeadlineExceeded', attempts, failures, losses
FROM temp.picked CROSS JOIN waiting ON waiting.job = picked.job

-- name: drop
-- A mark stays with the claim, so a deadline passes once.
DELETE FROM deadline WHERE job IN (SELECT job FROM temp.picked)
