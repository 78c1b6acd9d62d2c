-- ensure_pool: create a pool if needed; `grant_pool` then adds a token that is valid for one year.

-- name: insert_pool
-- Workers cannot register in it until it has a token.
INSERT INTO pool (namespace, name) VALUES (:namespace, :name) ON CONFLICT DO NOTHING

-- name: pool
-- Its id, for jobs and tokens.
SELECT id FROM pool WHERE namespace = :namespace AND name = :name

-- name: set_lease
-- For workers that register from now on.
UPDATE pool SET lease_seconds = :lease WHERE id = :pool AND lease_seconds <> :lease

-- name: delete_expired_tokens
-- So that they do not accumulate.
DELETE FROM token WHERE expires < :now
