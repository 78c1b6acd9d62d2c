-- leave_queues: delete jobs that end (`ended_job`) from the tables in which they waited.

-- name: ready
-- They cannot be claimed any more.
DELETE FROM ready WHERE job IN (SELECT job FROM temp.ended_job)

-- name: deferred
-- Their time does not come any more.
DELETE FROM deferred WHERE job IN (SELECT job FROM temp.ended_job)

-- name: waiting
-- Ends do not reach them any more.
DELETE FROM waiting WHERE job IN (SELECT job FROM temp.ended_job)
