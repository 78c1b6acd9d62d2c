-- reap_orphans: take back claims whose worker has no row.
-- Running -> Queued (reap)
-- Running -> Waiting (suspend)

-- name: select_claims
-- There are none as long as every reap and leave is one transaction.
INSERT INTO temp.selected_job (job)
SELECT running.job FROM running
WHERE NOT EXISTS (SELECT 1 FROM worker WHERE worker.id = running.worker)
ORDER BY running.job LIMIT :limit
