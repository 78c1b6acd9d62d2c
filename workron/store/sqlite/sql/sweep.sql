-- sweep: carry out a cancel, hold or resume of a whole run, or a change of its priority, in bounded
-- steps; the maintainer's settle goes on where a caller stopped.

-- name: begin
-- The newest wish counts; a cancel is never followed by another.
INSERT INTO sweep (run, verb, priority) VALUES (:run, :verb, :priority)
ON CONFLICT (run) DO UPDATE SET
    verb = coalesce(excluded.verb, sweep.verb), priority = coalesce(excluded.priority, sweep.priority)

-- name: standing
-- What is asked of a run, and the range of its jobs.
SELECT sweep.verb, sweep.priority, run.last FROM sweep JOIN run ON run.id = sweep.run WHERE sweep.run = :run

-- name: oldest
-- The next one to go on with.
SELECT run FROM sweep ORDER BY run LIMIT 1

-- name: end
-- Nothing is left to do for it.
DELETE FROM sweep WHERE run = :run
