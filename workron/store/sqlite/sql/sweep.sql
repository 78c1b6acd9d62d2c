-- sweep: carry out a cancel, hold or resume of a whole root, or a change of its priority, in bounded
-- steps; the maintainer's settle goes on where a caller stopped.

-- name: begin
-- The newest wish counts; a cancel is never followed by another.
INSERT INTO sweep (root, verb, priority) VALUES (:root, :verb, :priority)
ON CONFLICT (root) DO UPDATE SET
    verb = coalesce(excluded.verb, sweep.verb), priority = coalesce(excluded.priority, sweep.priority)

-- name: standing
-- What is asked of a root, and the range of its jobs.
SELECT sweep.verb, sweep.priority, root.last FROM sweep JOIN root ON root.id = sweep.root WHERE sweep.root = :root

-- name: oldest
-- The next one to go on with.
SELECT root FROM sweep ORDER BY root LIMIT 1

-- name: end
-- Nothing is left to do for it.
DELETE FROM sweep WHERE root = :root
