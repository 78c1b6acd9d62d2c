-- complete: accept the ends of claims that still stand, tell their downstreams, and claim anew.
-- Running -> Succeeded (succeed)
-- Running -> Failed (fail)
-- Running -> Waiting (retry)
-- Running -> Waiting (hold)
-- Running -> Cancelled (cancel)
-- Running -> Failed (expire)

-- name: report
-- One end. Only a claim that stands, of this worker, is taken, and once: its second report in a call
-- changes nothing. A retry goes on after its delay, and every other end is final. A value that cannot
-- be stored is refused here.
INSERT INTO temp.fallen
    (place, job, claim, worker, name, pool, priority, attempt, failures, losses, fence, alone, mark,
     claimed_at, outcome, state, reason, message, exit_code, due, result, output)
SELECT report.place, running.job, running.claim, running.worker, report.name, running.pool,
       running.priority, running.attempt, running.failures + (report.outcome <> 'Succeeded'),
       running.losses, running.fence, running.alone, running.mark, running.claimed_at,
       CASE report.outcome WHEN 'Succeeded' THEN 'Succeeded' WHEN 'Failed' THEN 'Failed'
                           WHEN 'Retry' THEN 'Retried' END,
       nullif(report.outcome, 'Retry'),
       CASE WHEN report.outcome <> 'Succeeded' THEN nullif(report.reason, '') END,
       report.message, report.exit_code, CASE report.outcome WHEN 'Retry' THEN report.due END,
       nullif(report.result, ''), CAST(report.output AS BLOB)
FROM (SELECT ? AS place, ? AS worker, ? AS name, ? AS job, ? AS claim, ? AS fence, ? AS outcome,
             ? AS reason, ? AS message, ? AS exit_code, ? AS due, ? AS result, ? AS output) AS report
CROSS JOIN running ON running.job = report.job
WHERE running.claim = report.claim AND running.fence = report.fence AND running.worker = report.worker
ON CONFLICT (job) DO NOTHING

-- name: answers
-- One for each end, in the order of the call; asked when not all were taken. What was taken under
-- another number is a repetition, and so is what an earlier call recorded. All else was taken back.
SELECT CASE
           WHEN fallen.place = report.key THEN 'accepted'
           WHEN fallen.job IS NOT NULL THEN 'already'
           WHEN EXISTS (SELECT 1 FROM attempt
                        WHERE attempt.job = json_extract(report.value, '$[0]')
                          AND attempt.claim = json_extract(report.value, '$[1]')
                          AND attempt.outcome NOT IN ('Lost', 'Released'))
           THEN 'already'
           ELSE 'stale' END AS answer
FROM json_each(:reports) AS report
LEFT JOIN temp.fallen ON fallen.job = json_extract(report.value, '$[0]')
                     AND fallen.claim = json_extract(report.value, '$[1]')
                     AND fallen.fence = json_extract(report.value, '$[2]')
ORDER BY report.key

-- name: keep_results
-- Downstreams read them; an attempt that is tried again leaves none.
INSERT INTO result (job, body)
SELECT job, result FROM temp.fallen WHERE result IS NOT NULL AND state IS NOT NULL

-- name: keep_outputs
-- Under its attempt, whichever way that ended.
INSERT INTO output (job, attempt, chunk, data)
SELECT job, attempt, -1, output FROM temp.fallen WHERE length(output) > 0
