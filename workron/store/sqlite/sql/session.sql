-- session: the worker behind a session key.

-- name: worker
-- All that a worker's verbs need of its row.
SELECT id, name, pool, draining FROM worker WHERE session = :session
