-- update_run: ask of a run what its object says now, unless a newer edition of that was heard already.

-- name: set_generation
-- Whatever it says, it was heard.
UPDATE run SET generation = :generation WHERE id = :run AND generation < :generation

-- name: current
-- What was asked of it before; nothing can be asked of what has ended, or was cancelled.
SELECT suspended, priority FROM run
WHERE id = :run AND NOT cancelled AND NOT EXISTS (SELECT 1 FROM done WHERE done.job = :run)

-- name: update_run
-- From here on what becomes ready goes by it.
UPDATE run SET cancelled = :cancelled, suspended = :suspended, priority = :priority WHERE id = :run
