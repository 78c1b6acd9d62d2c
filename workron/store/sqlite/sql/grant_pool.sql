-- grant_pool: allow workers to register in a pool with a token for one year.

-- name: grant_pool
-- Granting it again extends its validity.
INSERT INTO token (hash, pool, expires, granted)
SELECT :hash, id, :expires, 1 FROM pool WHERE namespace = :namespace AND name = :name
ON CONFLICT (hash) DO UPDATE
SET pool = excluded.pool, expires = excluded.expires, granted = excluded.granted
