-- bulk_update: carry out a cancel, hold or resume of a whole run, or a change of its priority, in bounded
-- steps; the maintainer's settle goes on where a caller stopped.

-- name: request
-- The newest wish counts; a cancel is never followed by another.
INSERT INTO bulk_update (run, operation, priority) VALUES (:run, :operation, :priority)
ON CONFLICT (run) DO UPDATE SET
    operation = coalesce(excluded.operation, bulk_update.operation), priority = coalesce(excluded.priority, bulk_update.priority)

-- name: current
-- What is asked of a run, and the range of its jobs.
SELECT bulk_update.operation, bulk_update.priority, run.last FROM bulk_update JOIN run ON run.id = bulk_update.run WHERE bulk_update.run = :run

-- name: oldest
-- The next one to go on with.
SELECT run FROM bulk_update ORDER BY run LIMIT 1

-- name: delete
-- Nothing is left to do for it.
DELETE FROM bulk_update WHERE run = :run
