-- grant_pool: allow workers to register in a pool with a token for one year, as a role of the pool if
-- a password is given; without one, as any role that can execute the functions.
-- Concurrent GRANTs on the same object fail, so calls are serialized.
CREATE OR REPLACE FUNCTION workron.grant_pool(
    _namespace text, _name text, _token text, _lease_seconds double precision,
    _password text, _connections integer
) RETURNS TABLE (role text, connections integer)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _pool integer;
    _role text;
BEGIN
    PERFORM 1 FROM workron.meta WHERE key = 'database' FOR UPDATE; -- guard: grant_pool
    SELECT id INTO STRICT _pool FROM workron.ensure_pools(ARRAY[_namespace], ARRAY[_name]);
    IF _password IS NOT NULL THEN
        _role := workron.ensure_pool_role(_namespace, _name, _password, _connections);
    END IF;
    UPDATE workron.pool SET lease_seconds = _lease_seconds, role = _role
    WHERE id = _pool AND (lease_seconds, role) IS DISTINCT FROM (_lease_seconds, _role);
    DELETE FROM workron.token WHERE expires < workron.now();
    INSERT INTO workron.token (hash, pool, expires, granted)
    VALUES (sha256(convert_to(_token, 'UTF8')), _pool, workron.now() + interval '1 year', true)
    ON CONFLICT (hash) DO UPDATE
    SET pool = excluded.pool, expires = excluded.expires, granted = excluded.granted;
    RETURN QUERY SELECT _role, sum(
        CASE name WHEN 'max_connections' THEN setting::integer ELSE -setting::integer END
    )::integer
    FROM pg_settings
    WHERE name IN ('max_connections', 'superuser_reserved_connections', 'reserved_connections');
END
$$;
