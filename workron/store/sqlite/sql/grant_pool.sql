-- grant_pool: let workers into a pool by this token for a year from now.

-- name: grant_pool
-- What was admitted before is good for longer.
INSERT INTO token (hash, pool, expires, granted)
SELECT :hash, id, :expires, 1 FROM pool WHERE namespace = :namespace AND name = :name
ON CONFLICT (hash) DO UPDATE
SET pool = excluded.pool, expires = excluded.expires, granted = excluded.granted
