-- reap_older_sessions: take back at once what older boots of a worker held; they are dead, for this one lives.

-- name: older_sessions
-- Who was entered before; what was entered later is for its own beats to decide.
SELECT id FROM worker WHERE pool = :pool AND name = :name AND id < :worker ORDER BY id
