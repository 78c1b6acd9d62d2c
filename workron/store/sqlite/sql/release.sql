-- release: hand claims back that this worker will not end; nothing is counted, unless they are lost.
-- Running -> Queued (release)
-- Running -> Queued (reap)
-- Running -> Failed (fail)

-- name: select_claims
-- Only what this worker holds.
INSERT INTO temp.selected_job (job)
SELECT running.job
FROM json_each(:claims) AS named
CROSS JOIN running ON running.claim = json_extract(named.value, '$[0]') AND running.fence = json_extract(named.value, '$[1]')
WHERE running.worker = :worker
GROUP BY running.job

-- name: answers
-- Asked before the claims are taken back, so that what stands is what will be accepted.
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
