-- bulk_update: record which bulk update of a run is in progress.

-- name: request
-- The newest request counts; a cancel is never replaced.
INSERT INTO bulk_update (run, operation, priority) VALUES (:run, :operation, :priority)
ON CONFLICT (run) DO UPDATE SET
    operation = coalesce(excluded.operation, bulk_update.operation), priority = coalesce(excluded.priority, bulk_update.priority)

-- name: current
-- What is requested of a run, the range of its jobs, and the last job that a cancellation ends.
SELECT bulk_update.operation, bulk_update.priority, run.last,
       CASE WHEN run.forced OR run.finally_from IS NULL THEN run.last ELSE run.finally_from - 1 END
           AS last_cancelled
FROM bulk_update JOIN run ON run.id = bulk_update.run
WHERE bulk_update.run = :run

-- name: oldest
-- The next one to continue.
SELECT run FROM bulk_update ORDER BY run LIMIT 1

-- name: delete
-- It is finished.
DELETE FROM bulk_update WHERE run = :run
