-- heartbeat: increment a worker's heartbeat counter and return the claims that it holds.
-- The first heartbeat reaps older sessions of the same name. A registration does not prove that they
-- are dead: it may be a delayed copy from a dead process, which sends no heartbeats.

-- name: increment
-- In place; no index changes.
UPDATE worker SET heartbeats = heartbeats + 1, seen_at = :now WHERE session = :session

-- name: held_claims
-- The worker must kill what it runs and does not find here.
SELECT running.job, running.claim, running.fence, running.signal
FROM worker CROSS JOIN running ON running.worker = worker.id
WHERE worker.session = :session
ORDER BY running.job

-- name: reply
-- A different database identity means that the database was replaced.
SELECT worker.id, worker.pool, worker.name, worker.heartbeats, worker.draining, meta.value AS database
FROM worker JOIN meta ON meta.key = 'database'
WHERE worker.session = :session
