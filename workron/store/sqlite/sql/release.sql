-- release: hand claims back that this worker will not end; nothing is counted.
-- Running -> Queued (release)

-- name: pick
-- Only what this worker holds.
INSERT INTO temp.picked (job)
SELECT running.job
FROM json_each(:claims) AS claim CROSS JOIN running ON running.claim = claim.value
WHERE running.worker = :worker
GROUP BY running.job

-- name: answers
-- Asked before the claims are taken back, so that what stands is what will be accepted.
SELECT CASE
           WHEN EXISTS (SELECT 1 FROM running
                        WHERE running.claim = claim.value AND running.worker = :worker)
           THEN 'accepted'
           WHEN EXISTS (SELECT 1 FROM attempt
                        WHERE attempt.claim = claim.value AND attempt.outcome = 'Released')
           THEN 'already'
           ELSE 'stale' END AS answer
FROM json_each(:claims) AS claim
ORDER BY claim.key
