-- find_session: find the worker of a session key.
SELECT id, name, pool, draining FROM worker WHERE session = :session
