-- enqueue: move jobs that may go on (`unblocked_job`) to the table where they belong; the only way
-- into `ready`.
-- Waiting -> Queued (ready)
-- Waiting -> Cancelled (cancel)
-- Running -> Queued (release)
-- Running -> Waiting (retry)
-- Running -> Waiting (suspend)
-- Queued -> Waiting (suspend)

-- name: choose_destination
-- Jobs of a cancelled run end, except those of `finally`, and jobs of a suspended run wait.
UPDATE temp.unblocked_job SET
    pool = (SELECT job.pool FROM job WHERE job.id = unblocked_job.job),
    destination = (SELECT CASE WHEN run.cancelled AND (run.forced OR run.finally_from IS NULL
                                                      OR unblocked_job.job < run.finally_from) THEN 'done'
                         WHEN run.suspended OR unblocked_job.awaits_proof THEN 'waiting'
                         WHEN unblocked_job.due IS NOT NULL THEN 'deferred'
                         ELSE 'ready' END
             FROM job CROSS JOIN run ON run.id = job.run WHERE job.id = unblocked_job.job)

-- name: cancel
-- They end with their run.
INSERT INTO temp.ended_job (job, state, attempts, failures, losses)
SELECT job, 'Cancelled', attempts, failures, losses FROM temp.unblocked_job WHERE destination = 'done'

-- name: insert_waiting
-- They wait for one thing while suspended, and for one while awaiting proof.
INSERT INTO waiting
    (job, remaining, suspended, awaits_proof, priority, attempts, failures, losses, fence, alone)
SELECT unblocked_job.job, run.suspended + unblocked_job.awaits_proof, run.suspended, unblocked_job.awaits_proof, unblocked_job.priority,
       unblocked_job.attempts, unblocked_job.failures, unblocked_job.losses, unblocked_job.fence, unblocked_job.alone
FROM temp.unblocked_job CROSS JOIN job ON job.id = unblocked_job.job CROSS JOIN run ON run.id = job.run
WHERE unblocked_job.destination = 'waiting'

-- name: insert_deferred
-- Backoffs and scheduled starts.
INSERT INTO deferred
    (job, due, reason, pool, priority, attempts, failures, losses, fence, alone)
SELECT job, due, reason, pool, priority, attempts, failures, losses, fence, alone
FROM temp.unblocked_job WHERE destination = 'deferred'

-- name: insert_ready
-- From here on workers can claim them.
INSERT INTO ready (job, pool, priority, attempts, failures, losses, fence, alone)
SELECT job, pool, priority, attempts, failures, losses, fence, alone
FROM temp.unblocked_job WHERE destination = 'ready'
