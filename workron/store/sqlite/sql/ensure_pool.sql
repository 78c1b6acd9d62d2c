-- ensure_pool: make a pool if it is new, and admit one more token for a year.

-- name: make
-- A submission may have made it already.
INSERT INTO pool (namespace, name) VALUES (:namespace, :name) ON CONFLICT DO NOTHING

-- name: lease
-- For workers that register from now on.
UPDATE pool SET lease_seconds = :lease
WHERE namespace = :namespace AND name = :name AND lease_seconds <> :lease

-- name: drop_expired
-- Else they would pile up.
DELETE FROM token WHERE expires < :now

-- name: admit
-- Older tokens stay good, so that nobody who holds one is shut out by another's call.
INSERT INTO token (hash, pool, expires)
SELECT :hash, id, :expires FROM pool WHERE namespace = :namespace AND name = :name
