-- ensure_pool: make a pool if it is new, and set the token that its workers register with.
INSERT INTO workron.pool (namespace, name, token_hash)
VALUES ($1, $2, sha256(convert_to($3, 'UTF8')))
ON CONFLICT (namespace, name) DO UPDATE SET token_hash = excluded.token_hash;
