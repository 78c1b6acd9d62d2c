-- end_claims: process ended claims (`ended_claim`); shared by all operations that end claims.
-- Running -> Cancelled (cancel)
-- Running -> Failed (expire)

-- name: apply_signals
-- A signal decides, whatever the worker reported. Suspend is applied by enqueue.
UPDATE temp.ended_claim SET
    state = CASE signal WHEN 'Cancel' THEN 'Cancelled' ELSE 'Failed' END,
    reason = CASE signal WHEN 'Expire' THEN 'DeadlineExceeded' END,
    -- A worker's message stays; the loss of workers is not the reason of this end.
    message = CASE WHEN outcome NOT IN ('Lost', 'Released') THEN message END,
    outcome = CASE WHEN signal = 'Cancel' THEN 'Cancelled'
                   WHEN outcome IN ('Lost', 'Released') THEN outcome
                   ELSE 'Failed' END
WHERE signal IN ('Cancel', 'Expire')

-- name: insert_attempts
-- Every claim leaves one row.
INSERT INTO attempt
    (job, attempt, claim, outcome, reason, exit_code, worker, started_at, finished_at)
SELECT job, attempt, claim, outcome, reason, exit_code, name, claimed_at, :now FROM temp.ended_claim

-- name: delete_running
-- Later reports on these claims are stale.
DELETE FROM running WHERE job IN (SELECT job FROM temp.ended_claim)

-- name: select_ended_jobs
-- Jobs that end with their claim.
INSERT INTO temp.ended_job
    (job, state, reason, message, exit_code, attempts, failures, losses, worker)
SELECT job, state, reason, message, exit_code, attempt, failures, losses, name
FROM temp.ended_claim WHERE state IS NOT NULL

-- name: select_unblocked_jobs
-- Jobs that are tried again.
INSERT INTO temp.unblocked_job
    (job, due, reason, priority, attempts, failures, losses, fence, alone, awaits_proof)
SELECT job, due, 'Backoff', priority, attempt, failures, losses, fence, alone, awaits_proof
FROM temp.ended_claim WHERE state IS NULL

-- name: insert_awaiting_proof
-- The worker whose death must be proven before the job may go on.
INSERT INTO awaiting_proof (job, worker, pool, name)
SELECT job, worker, pool, name FROM temp.ended_claim WHERE state IS NULL AND awaits_proof

-- name: results
-- The new state of each job; null if it goes on.
SELECT job, state FROM temp.ended_claim ORDER BY job
