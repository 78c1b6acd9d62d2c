-- has_maintainer: whether a maintainer's lease runs.

-- name: has_maintainer
-- No row: nobody was elected, or not again.
SELECT 1 AS is_elected FROM leader WHERE expires > :now
