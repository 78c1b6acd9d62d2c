-- edit: ask of a root what its object says now, unless a newer edition of that was heard already.

-- name: hear
-- Whatever it says, it was heard.
UPDATE root SET generation = :generation WHERE id = :root AND generation < :generation

-- name: standing
-- What was asked of it before; nothing can be asked of what has ended, or was cancelled.
SELECT held, priority FROM root
WHERE id = :root AND NOT cancelled AND NOT EXISTS (SELECT 1 FROM done WHERE done.job = :root)

-- name: ask
-- From here on what becomes ready goes by it.
UPDATE root SET cancelled = :cancelled, held = :held, priority = :priority WHERE id = :root
