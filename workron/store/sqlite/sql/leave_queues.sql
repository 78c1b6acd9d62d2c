-- leave_queues: delete jobs that end (`ended_job`) from the tables in which they waited.

-- name: {table} (ready, deferred, waiting)
-- They cannot be claimed any more, and ends do not reach them.
DELETE FROM {table} WHERE job IN (SELECT job FROM temp.ended_job)
