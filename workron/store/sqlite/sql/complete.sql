-- complete: accept reports on valid claims, propagate their ends, and claim new jobs, in one round
-- trip.
-- Running -> Succeeded (succeed)
-- Running -> Failed (fail)
-- Running -> Waiting (retry)
-- Running -> Waiting (suspend)
-- Running -> Cancelled (cancel)
-- Running -> Failed (expire)

-- name: insert_report
-- One row per report; a value that cannot be stored is refused here. Missing values may be sent as an
-- empty text.
INSERT INTO temp.attempt_report
    (number, job, claim, fence, outcome, reason, message, exit_code, delay, result, output)
VALUES (?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, nullif(?, ''), CAST(? AS BLOB))

-- name: select_ended_claims
-- Only valid claims of this worker, and each once: a second report in the same call changes nothing.
-- A retry goes on after its delay; every other outcome is final.
INSERT INTO temp.ended_claim
    (job, claim, worker, name, pool, priority, attempt, failures, losses, fence, alone, signal,
     claimed_at, outcome, state, reason, message, exit_code, due, number)
SELECT running.job, running.claim, running.worker, :name, running.pool, running.priority,
       running.attempt, running.failures + (attempt_report.outcome <> 'Succeeded'), running.losses,
       running.fence, running.alone, running.signal, running.claimed_at,
       CASE attempt_report.outcome WHEN 'Retry' THEN 'Retried' ELSE attempt_report.outcome END,
       nullif(attempt_report.outcome, 'Retry'),
       CASE WHEN attempt_report.outcome <> 'Succeeded' THEN attempt_report.reason END,
       substr(attempt_report.message, 1, 4096), attempt_report.exit_code,
       CASE WHEN attempt_report.outcome = 'Retry' THEN :now + attempt_report.delay END, attempt_report.number
FROM temp.attempt_report CROSS JOIN running ON running.job = attempt_report.job
WHERE running.claim = attempt_report.claim AND running.fence = attempt_report.fence AND running.worker = :worker
ORDER BY attempt_report.number
ON CONFLICT (job) DO NOTHING

-- name: answers
-- One per report, in order; only needed if not all were accepted. A report is a repetition if another
-- report of this call, or an earlier call, was accepted.
SELECT CASE
           WHEN ended_claim.number = attempt_report.number THEN 'accepted'
           WHEN ended_claim.job IS NOT NULL THEN 'already'
           WHEN EXISTS (SELECT 1 FROM attempt
                        WHERE attempt.job = attempt_report.job AND attempt.claim = attempt_report.claim
                          AND attempt.outcome NOT IN ('Lost', 'Released'))
           THEN 'already'
           ELSE 'stale' END AS answer
FROM temp.attempt_report
LEFT JOIN temp.ended_claim ON ended_claim.job = attempt_report.job AND ended_claim.claim = attempt_report.claim
                     AND ended_claim.fence = attempt_report.fence
ORDER BY attempt_report.number

-- name: insert_results
-- Downstreams read them; a retried attempt has none.
INSERT INTO result (job, body)
SELECT attempt_report.job, attempt_report.result
FROM temp.attempt_report CROSS JOIN temp.ended_claim ON ended_claim.job = attempt_report.job AND ended_claim.number = attempt_report.number
WHERE attempt_report.result IS NOT NULL AND ended_claim.state IS NOT NULL

-- name: insert_outputs
-- Stored for every outcome.
INSERT INTO output (job, attempt, chunk, data)
SELECT attempt_report.job, ended_claim.attempt, -1, attempt_report.output
FROM temp.attempt_report CROSS JOIN temp.ended_claim ON ended_claim.job = attempt_report.job AND ended_claim.number = attempt_report.number
WHERE length(attempt_report.output) > 0
