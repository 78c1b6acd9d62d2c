-- heartbeat: prove that a worker lives, and tell it what it still holds.
-- The first beat proves its older boots dead. The registration does not: it may be a late copy of a
-- dead boot's, and that boot never beats.

-- name: count
-- A rise in place; nothing else proves life, and no index moves with it.
UPDATE worker SET beats = beats + 1, seen_at = :now WHERE session = :session

-- name: held
-- What it runs and does not find here, it must kill.
SELECT running.job, running.claim, running.fence, running.mark
FROM worker CROSS JOIN running ON running.worker = worker.id
WHERE worker.session = :session
ORDER BY running.job

-- name: answer
-- Another identity of the database means another history.
SELECT worker.id, worker.pool, worker.name, worker.beats, worker.draining, meta.value AS database
FROM worker JOIN meta ON meta.key = 'database'
WHERE worker.session = :session
