-- reap_orphans: requeue claims whose worker has no row. None should exist: a worker and its
-- claims are deleted in one transaction.
-- Running -> Queued (reap)
-- Running -> Waiting (suspend)
INSERT INTO temp.selected_job (job)
SELECT running.job FROM running
WHERE NOT EXISTS (SELECT 1 FROM worker WHERE worker.id = running.worker)
ORDER BY running.job LIMIT :limit
