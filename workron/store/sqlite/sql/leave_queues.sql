-- leave_queues: take the jobs that end now out of wherever they waited.

-- name: ready
-- Nobody can claim them any more.
DELETE FROM ready WHERE job IN (SELECT job FROM temp.ended_job)

-- name: deferred
-- Nor will their time come.
DELETE FROM deferred WHERE job IN (SELECT job FROM temp.ended_job)

-- name: waiting
-- Nor will they be told of ends.
DELETE FROM waiting WHERE job IN (SELECT job FROM temp.ended_job)
