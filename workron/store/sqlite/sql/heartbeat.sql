-- heartbeat: prove that a worker lives, and tell it what it still holds.
-- The first beat proves its older boots dead. The registration does not: it may be a late copy of a
-- dead boot's, and that boot never beats.

-- name: increment
-- A rise in place; nothing else proves life, and no index moves with it.
UPDATE worker SET heartbeats = heartbeats + 1, seen_at = :now WHERE session = :session

-- name: held_claims
-- What it runs and does not find here, it must kill.
SELECT running.job, running.claim, running.fence, running.signal
FROM worker CROSS JOIN running ON running.worker = worker.id
WHERE worker.session = :session
ORDER BY running.job

-- name: reply
-- Another identity of the database means another history.
SELECT worker.id, worker.pool, worker.name, worker.heartbeats, worker.draining, meta.value AS database
FROM worker JOIN meta ON meta.key = 'database'
WHERE worker.session = :session
