-- reap_older_sessions: reap the older sessions of a worker name; this session proves that they are
-- dead.

-- name: older_sessions
-- Those that registered before; a later one is left to its own heartbeats.
SELECT id FROM worker WHERE pool = :pool AND name = :name AND id < :worker ORDER BY id
