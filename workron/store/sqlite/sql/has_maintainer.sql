-- has_maintainer: return whether a maintainer is elected and its lease is valid.

-- name: has_maintainer
-- No row: no lease is valid.
SELECT 1 AS is_elected FROM leader WHERE expires > :now
