-- find_session: the worker behind a session key.

-- name: find_session
-- All that a worker's verbs need of its row.
SELECT id, name, pool, draining FROM worker WHERE session = :session
