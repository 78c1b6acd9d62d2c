-- requeue: take the picked jobs off workers that did not end them.
-- Running -> Queued (release)
-- Running -> Queued (reap)
-- Running -> Waiting (suspend)
-- Running -> Failed (fail)
-- `:losses` is what each is charged, `:alone` makes each run alone next, `:proven` says that its worker
-- cannot run it any more.

-- name: select_ended_claims
-- Too many losses end a job; one that forbids overlap waits for proof of its worker's death.
INSERT INTO temp.ended_claim
    (job, claim, worker, name, pool, priority, attempt, failures, losses, fence, alone, signal,
     claimed_at, outcome, state, reason, message, awaits_proof)
SELECT running.job, running.claim, running.worker, worker.name, running.pool, running.priority,
       running.attempt, running.failures, running.losses + :losses, running.fence,
       running.alone OR :alone, running.signal, running.claimed_at, :outcome,
       CASE WHEN running.losses + :losses > job.max_losses THEN 'Failed' END,
       CASE WHEN running.losses + :losses > job.max_losses THEN 'WorkerLost' END,
       CASE WHEN running.losses + :losses > job.max_losses
            THEN printf('%d workers were lost while they ran it', running.losses + :losses) END,
       job.needs_proof AND NOT :proven
FROM temp.selected_job
CROSS JOIN running ON running.job = selected_job.job
CROSS JOIN job ON job.id = running.job
LEFT JOIN worker ON worker.id = running.worker
