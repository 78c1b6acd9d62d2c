-- ensure_pool: create a pool if needed, and add a token that is valid for one year.

-- name: insert_pool
-- A submission may have created it.
INSERT INTO pool (namespace, name) VALUES (:namespace, :name) ON CONFLICT DO NOTHING

-- name: set_lease
-- For workers that register from now on.
UPDATE pool SET lease_seconds = :lease
WHERE namespace = :namespace AND name = :name AND lease_seconds <> :lease

-- name: delete_expired_tokens
-- So that they do not accumulate.
DELETE FROM token WHERE expires < :now

-- name: insert_token
-- Older tokens stay valid.
INSERT INTO token (hash, pool, expires)
SELECT :hash, id, :expires FROM pool WHERE namespace = :namespace AND name = :name
