-- requeue: select claims that end without an end of their job, unless it has too many losses.
-- `:losses` is charged to each job, `:alone` makes each run alone next, and `:proven` says that the
-- worker certainly does not run them any more: a job with `overlap: Forbid` waits for that.
-- Running -> Queued (release)
-- Running -> Queued (reap)
-- Running -> Waiting (suspend)
-- Running -> Failed (fail)
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
