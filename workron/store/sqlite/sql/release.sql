-- release: requeue claims that their worker returns; nothing is charged, unless they were lost.
-- Running -> Queued (release)
-- Running -> Queued (reap)
-- Running -> Failed (fail)

-- name: select_claims
-- Only claims of this worker.
INSERT INTO temp.selected_job (job)
SELECT running.job
FROM json_each(:claims) AS named
CROSS JOIN running ON running.claim = json_extract(named.value, '$[0]') AND running.fence = json_extract(named.value, '$[1]')
WHERE running.worker = :worker
GROUP BY running.job

-- name: answers
-- Before the claims are requeued: valid claims will be accepted.
SELECT CASE
           WHEN EXISTS (SELECT 1 FROM running
                        WHERE running.claim = json_extract(named.value, '$[0]')
                          AND running.fence = json_extract(named.value, '$[1]') AND running.worker = :worker)
           THEN 'accepted'
           WHEN EXISTS (SELECT 1 FROM attempt
                        WHERE attempt.claim = json_extract(named.value, '$[0]')
                          AND attempt.outcome = 'Released')
           THEN 'already'
           ELSE 'stale' END AS answer
FROM json_each(:claims) AS named
ORDER BY named.key
