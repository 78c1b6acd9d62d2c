-- enqueue: put jobs that may go on where they belong; the only way into `ready`, shared by all verbs.
-- Waiting -> Queued (ready)
-- Waiting -> Cancelled (cancel)
-- Running -> Queued (release)
-- Running -> Waiting (retry)
-- Running -> Waiting (suspend)
-- Queued -> Waiting (suspend)

-- name: choose_destination
-- Nothing of a cancelled run becomes ready, and nothing of a held one.
UPDATE temp.unblocked_job SET
    pool = (SELECT job.pool FROM job WHERE job.id = unblocked_job.job),
    place = (SELECT CASE WHEN run.cancelled THEN 'done'
                         WHEN run.suspended OR unblocked_job.awaits_proof THEN 'waiting'
                         WHEN unblocked_job.due IS NOT NULL THEN 'deferred'
                         ELSE 'ready' END
             FROM job CROSS JOIN run ON run.id = job.run WHERE job.id = unblocked_job.job)

-- name: cancel
-- Who would have gone on in a cancelled run ends.
INSERT INTO temp.ended_job (job, state, attempts, failures, losses)
SELECT job, 'Cancelled', attempts, failures, losses FROM temp.unblocked_job WHERE place = 'done'

-- name: insert_waiting
-- One to wait for by the hold, one by the missing proof.
INSERT INTO waiting
    (job, remaining, suspended, awaits_proof, priority, attempts, failures, losses, fence, alone)
SELECT unblocked_job.job, run.suspended + unblocked_job.awaits_proof, run.suspended, unblocked_job.awaits_proof, unblocked_job.priority,
       unblocked_job.attempts, unblocked_job.failures, unblocked_job.losses, unblocked_job.fence, unblocked_job.alone
FROM temp.unblocked_job CROSS JOIN job ON job.id = unblocked_job.job CROSS JOIN run ON run.id = job.run
WHERE unblocked_job.place = 'waiting'

-- name: insert_deferred
-- A backoff, or a start that lies ahead.
INSERT INTO deferred
    (job, due, reason, pool, priority, attempts, failures, losses, fence, alone)
SELECT job, due, reason, pool, priority, attempts, failures, losses, fence, alone
FROM temp.unblocked_job WHERE place = 'deferred'

-- name: insert_ready
-- From here on a worker may claim it.
INSERT INTO ready (job, pool, priority, attempts, failures, losses, fence, alone)
SELECT job, pool, priority, attempts, failures, losses, fence, alone
FROM temp.unblocked_job WHERE place = 'ready'
