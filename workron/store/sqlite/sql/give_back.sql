-- give_back: take the picked jobs off workers that did not end them.
-- Running -> Queued (release)
-- Running -> Queued (reap)
-- Running -> Waiting (suspend)
-- Running -> Failed (fail)
-- `:losses` is what each is charged, `:apart` has each tried alone next, `:proven` says that its worker
-- cannot run it any more.

-- name: take
-- Too many losses end a job; one that forbids overlap waits for proof of its worker's death.
INSERT INTO temp.fallen
    (job, claim, worker, name, pool, priority, attempt, failures, losses, fence, alone, mark,
     claimed_at, outcome, state, reason, message, unproven)
SELECT running.job, running.claim, running.worker, worker.name, running.pool, running.priority,
       running.attempt, running.failures, running.losses + :losses, running.fence,
       running.alone OR :apart, running.mark, running.claimed_at, :outcome,
       CASE WHEN running.losses + :losses > job.max_losses THEN 'Failed' END,
       CASE WHEN running.losses + :losses > job.max_losses THEN 'WorkerLost' END,
       CASE WHEN running.losses + :losses > job.max_losses
            THEN printf('%d workers vanished while they ran it', running.losses + :losses) END,
       job.needs_proof AND NOT :proven
FROM temp.picked
CROSS JOIN running ON running.job = picked.job
CROSS JOIN job ON job.id = running.job
LEFT JOIN worker ON worker.id = running.worker
