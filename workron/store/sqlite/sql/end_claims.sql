-- end_claims: what follows when claims are over, whoever ended them; shared by the verbs that do.
-- Running -> Cancelled (cancel)
-- Running -> Failed (expire)

-- name: obey
-- What somebody asked of a running job decides, whatever its worker says; Hold is obeyed by place.
UPDATE temp.fallen SET
    state = CASE mark WHEN 'Cancel' THEN 'Cancelled' ELSE 'Failed' END,
    reason = CASE mark WHEN 'Expire' THEN 'DeadlineExceeded' END,
    -- What its worker said of it stays; that workers vanished is not why it ended.
    message = CASE WHEN outcome NOT IN ('Lost', 'Released') THEN message END,
    outcome = CASE WHEN mark = 'Cancel' THEN 'Cancelled'
                   WHEN outcome IN ('Lost', 'Released') THEN outcome
                   ELSE 'Failed' END
WHERE mark IN ('Cancel', 'Expire')

-- name: record
-- Every claim that was ever made leaves one row.
INSERT INTO attempt
    (job, attempt, claim, outcome, reason, exit_code, worker, started_at, finished_at)
SELECT job, attempt, claim, outcome, reason, exit_code, name, claimed_at, :now FROM temp.fallen

-- name: leave_running
-- From here on nothing from these claims is stored any more.
DELETE FROM running WHERE job IN (SELECT job FROM temp.fallen)

-- name: end
-- Those that are over with their claim.
INSERT INTO temp.ended
    (job, state, reason, message, exit_code, attempts, failures, losses, worker)
SELECT job, state, reason, message, exit_code, attempt, failures, losses, name
FROM temp.fallen WHERE state IS NOT NULL

-- name: go_on
-- Those that are tried again.
INSERT INTO temp.moving
    (job, due, reason, priority, attempts, failures, losses, fence, alone, unproven)
SELECT job, due, 'Backoff', priority, attempt, failures, losses, fence, alone, unproven
FROM temp.fallen WHERE state IS NULL

-- name: miss
-- Whose death is to be proven before an unproven job may go on.
INSERT INTO missing (job, worker, pool, name)
SELECT job, worker, pool, name FROM temp.fallen WHERE state IS NULL AND unproven

-- name: fates
-- What became of each job.
SELECT job, state FROM temp.fallen ORDER BY job
