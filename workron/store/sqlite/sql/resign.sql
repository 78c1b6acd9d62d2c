-- resign: give up the maintainer's lease.

-- name: resign
-- Only its own lease.
DELETE FROM leader WHERE holder = :holder
