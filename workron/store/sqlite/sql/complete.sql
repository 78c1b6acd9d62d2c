-- complete: accept the ends of claims that still stand, tell their downstreams, and claim anew.
-- Running -> Succeeded (succeed)
-- Running -> Failed (fail)
-- Running -> Waiting (retry)
-- Running -> Waiting (suspend)
-- Running -> Cancelled (cancel)
-- Running -> Failed (expire)

-- name: report
-- One row an end; a value that cannot be stored is refused here. What is not there may be given as an
-- empty text.
INSERT INTO temp.report
    (place, job, claim, fence, outcome, reason, message, exit_code, delay, result, output)
VALUES (?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, nullif(?, ''), CAST(? AS BLOB))

-- name: take
-- Only a claim that stands, of this worker, is taken, and once: its second report in a call changes
-- nothing. A retry goes on after its delay; every other end is final.
INSERT INTO temp.fallen
    (job, claim, worker, name, pool, priority, attempt, failures, losses, fence, alone, mark,
     claimed_at, outcome, state, reason, message, exit_code, due, place)
SELECT running.job, running.claim, running.worker, :name, running.pool, running.priority,
       running.attempt, running.failures + (report.outcome <> 'Succeeded'), running.losses,
       running.fence, running.alone, running.mark, running.claimed_at,
       CASE report.outcome WHEN 'Retry' THEN 'Retried' ELSE report.outcome END,
       nullif(report.outcome, 'Retry'),
       CASE WHEN report.outcome <> 'Succeeded' THEN report.reason END,
       substr(report.message, 1, 4096), report.exit_code,
       CASE WHEN report.outcome = 'Retry' THEN :now + report.delay END, report.place
FROM temp.report CROSS JOIN running ON running.job = report.job
WHERE running.claim = report.claim AND running.fence = report.fence AND running.worker = :worker
ORDER BY report.place
ON CONFLICT (job) DO NOTHING

-- name: answers
-- One for each end, in the order of the call; asked when not all were taken. What was taken by another
-- report is a repetition, and so is what an earlier call recorded. All else was taken back.
SELECT CASE
           WHEN fallen.place = report.place THEN 'accepted'
           WHEN fallen.job IS NOT NULL THEN 'already'
           WHEN EXISTS (SELECT 1 FROM attempt
                        WHERE attempt.job = report.job AND attempt.claim = report.claim
                          AND attempt.outcome NOT IN ('Lost', 'Released'))
           THEN 'already'
           ELSE 'stale' END AS answer
FROM temp.report
LEFT JOIN temp.fallen ON fallen.job = report.job AND fallen.claim = report.claim
                     AND fallen.fence = report.fence
ORDER BY report.place

-- name: keep_results
-- Downstreams read them; an attempt that is tried again leaves none.
INSERT INTO result (job, body)
SELECT report.job, report.result
FROM temp.report CROSS JOIN temp.fallen ON fallen.job = report.job AND fallen.place = report.place
WHERE report.result IS NOT NULL AND fallen.state IS NOT NULL

-- name: keep_outputs
-- Under its attempt, whichever way that ended.
INSERT INTO output (job, attempt, chunk, data)
SELECT report.job, fallen.attempt, -1, report.output
FROM temp.report CROSS JOIN temp.fallen ON fallen.job = report.job AND fallen.place = report.place
WHERE length(report.output) > 0
