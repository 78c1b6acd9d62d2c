-- drain: let a worker end what it has and claim no more.

-- name: drain
-- It learns of it with its next beat.
UPDATE worker SET draining = 1 WHERE id = :worker
