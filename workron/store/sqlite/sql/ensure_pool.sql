-- ensure_pool: make a pool if it is new, and admit one more token for a year.

-- name: insert_pool
-- A submission may have made it already.
INSERT INTO pool (namespace, name) VALUES (:namespace, :name) ON CONFLICT DO NOTHING

-- name: set_lease
-- For workers that register from now on.
UPDATE pool SET lease_seconds = :lease
WHERE namespace = :namespace AND name = :name AND lease_seconds <> :lease

-- name: delete_expired_tokens
-- Else they would pile up.
DELETE FROM token WHERE expires < :now

-- name: insert_token
-- Older tokens stay good, so that nobody who holds one is shut out by another's call.
INSERT INTO token (hash, pool, expires)
SELECT :hash, id, :expires FROM pool WHERE namespace = :namespace AND name = :name
