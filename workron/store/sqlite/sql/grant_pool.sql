-- grant_pool: allow workers to register in a pool with a token for one year. Older tokens stay valid;
-- granting one again extends its validity.
INSERT INTO token (hash, pool, expires, granted) VALUES (:hash, :pool, :expires, :granted)
ON CONFLICT (hash) DO UPDATE
SET pool = excluded.pool, expires = excluded.expires, granted = excluded.granted
