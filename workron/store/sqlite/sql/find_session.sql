-- find_session: find the worker of a session key.

-- name: find_session
-- What the calls of a worker need of its row.
SELECT id, name, pool, draining FROM worker WHERE session = :session
