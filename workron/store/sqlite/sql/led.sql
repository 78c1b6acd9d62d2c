-- led: whether a maintainer's lease runs.

-- name: led
-- No row: nobody was elected, or not again.
SELECT 1 AS led FROM leader WHERE expires > :now
