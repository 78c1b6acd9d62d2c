-- resign: give the maintainer's lease up at once.

-- name: resign
-- Only one's own.
DELETE FROM leader WHERE holder = :holder
