-- complete: accept the ends of claims that still stand, tell their downstreams, and claim anew.
-- Running -> Succeeded (succeed)
-- Running -> Failed (fail)
-- Running -> Waiting (retry)
-- Running -> Waiting (suspend)
-- Running -> Cancelled (cancel)
-- Running -> Failed (expire)

-- name: insert_report
-- One row an end; a value that cannot be stored is refused here. What is not there may be given as an
-- empty text.
INSERT INTO temp.attempt_report
    (place, job, claim, fence, outcome, reason, message, exit_code, delay, result, output)
VALUES (?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, nullif(?, ''), CAST(? AS BLOB))

-- name: select_ended_claims
-- Only a claim that stands, of this worker, is taken, and once: its second report in a call changes
-- nothing. A retry goes on after its delay; every other end is final.
INSERT INTO temp.ended_claim
    (job, claim, worker, name, pool, priority, attempt, failures, losses, fence, alone, signal,
     claimed_at, outcome, state, reason, message, exit_code, due, place)
SELECT running.job, running.claim, running.worker, :name, running.pool, running.priority,
       running.attempt, running.failures + (attempt_report.outcome <> 'Succeeded'), running.losses,
       running.fence, running.alone, running.signal, running.claimed_at,
       CASE attempt_report.outcome WHEN 'Retry' THEN 'Retried' ELSE attempt_report.outcome END,
       nullif(attempt_report.outcome, 'Retry'),
       CASE WHEN attempt_report.outcome <> 'Succeeded' THEN attempt_report.reason END,
       substr(attempt_report.message, 1, 4096), attempt_report.exit_code,
       CASE WHEN attempt_report.outcome = 'Retry' THEN :now + attempt_report.delay END, attempt_report.place
FROM temp.attempt_report CROSS JOIN running ON running.job = attempt_report.job
WHERE running.claim = attempt_report.claim AND running.fence = attempt_report.fence AND running.worker = :worker
ORDER BY attempt_report.place
ON CONFLICT (job) DO NOTHING

-- name: answers
-- One for each end, in the order of the call; asked when not all were taken. What was taken by another
-- report is a repetition, and so is what an earlier call recorded. All else was taken back.
SELECT CASE
           WHEN ended_claim.place = attempt_report.place THEN 'accepted'
           WHEN ended_claim.job IS NOT NULL THEN 'already'
           WHEN EXISTS (SELECT 1 FROM attempt
                        WHERE attempt.job = attempt_report.job AND attempt.claim = attempt_report.claim
                          AND attempt.outcome NOT IN ('Lost', 'Released'))
           THEN 'already'
           ELSE 'stale' END AS answer
FROM temp.attempt_report
LEFT JOIN temp.ended_claim ON ended_claim.job = attempt_report.job AND ended_claim.claim = attempt_report.claim
                     AND ended_claim.fence = attempt_report.fence
ORDER BY attempt_report.place

-- name: insert_results
-- Downstreams read them; an attempt that is tried again leaves none.
INSERT INTO result (job, body)
SELECT attempt_report.job, attempt_report.result
FROM temp.attempt_report CROSS JOIN temp.ended_claim ON ended_claim.job = attempt_report.job AND ended_claim.place = attempt_report.place
WHERE attempt_report.result IS NOT NULL AND ended_claim.state IS NOT NULL

-- name: insert_outputs
-- Under its attempt, whichever way that ended.
INSERT INTO output (job, attempt, chunk, data)
SELECT attempt_report.job, ended_claim.attempt, -1, attempt_report.output
FROM temp.attempt_report CROSS JOIN temp.ended_claim ON ended_claim.job = attempt_report.job AND ended_claim.place = attempt_report.place
WHERE length(attempt_report.output) > 0
