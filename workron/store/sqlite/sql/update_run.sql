-- update_run: ask of a run what its object says now, unless a newer edition of that was heard already.

-- name: hear
-- Whatever it says, it was heard.
UPDATE run SET generation = :generation WHERE id = :run AND generation < :generation

-- name: standing
-- What was asked of it before; nothing can be asked of what has ended, or was cancelled.
SELECT held, priority FROM run
WHERE id = :run AND NOT cancelled AND NOT EXISTS (SELECT 1 FROM done WHERE done.job = :run)

-- name: ask
-- From here on what becomes ready goes by it.
UPDATE run SET cancelled = :cancelled, held = :held, priority = :priority WHERE id = :run
