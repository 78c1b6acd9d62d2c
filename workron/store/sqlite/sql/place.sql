-- place: put jobs that may go on where they belong; the only way into `ready`, shared by all verbs.
-- Waiting -> Queued (ready)
-- Waiting -> Cancelled (cancel)
-- Running -> Queued (release)
-- Running -> Waiting (retry)
-- Running -> Waiting (suspend)
-- Queued -> Waiting (suspend)

-- name: judge
-- Nothing of a cancelled run becomes ready, and nothing of a held one.
UPDATE temp.moving SET
    pool = (SELECT job.pool FROM job WHERE job.id = moving.job),
    place = (SELECT CASE WHEN run.cancelled THEN 'done'
                         WHEN run.held OR moving.unproven THEN 'waiting'
                         WHEN moving.due IS NOT NULL THEN 'deferred'
                         ELSE 'ready' END
             FROM job CROSS JOIN run ON run.id = job.run WHERE job.id = moving.job)

-- name: cancel
-- Who would have gone on in a cancelled run ends.
INSERT INTO temp.ended (job, state, attempts, failures, losses)
SELECT job, 'Cancelled', attempts, failures, losses FROM temp.moving WHERE place = 'done'

-- name: hold
-- One to wait for by the hold, one by the missing proof.
INSERT INTO waiting
    (job, remaining, held, unproven, priority, attempts, failures, losses, fence, alone)
SELECT moving.job, run.held + moving.unproven, run.held, moving.unproven, moving.priority,
       moving.attempts, moving.failures, moving.losses, moving.fence, moving.alone
FROM temp.moving CROSS JOIN job ON job.id = moving.job CROSS JOIN run ON run.id = job.run
WHERE moving.place = 'waiting'

-- name: defer
-- A backoff, or a start that lies ahead.
INSERT INTO deferred
    (job, due, reason, pool, priority, attempts, failures, losses, fence, alone)
SELECT job, due, reason, pool, priority, attempts, failures, losses, fence, alone
FROM temp.moving WHERE place = 'deferred'

-- name: queue
-- From here on a worker may claim it.
INSERT INTO ready (job, pool, priority, attempts, failures, losses, fence, alone)
SELECT job, pool, priority, attempts, failures, losses, fence, alone
FROM temp.moving WHERE place = 'ready'
