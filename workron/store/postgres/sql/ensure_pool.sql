-- ensure_pool: create a pool if needed, and add a token that is valid for one year.
CREATE OR REPLACE FUNCTION workron.ensure_pool(
    _namespace text, _name text, _token text, _lease_seconds double precision
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _pool integer;
BEGIN
    SELECT id INTO STRICT _pool FROM workron.ensure_pools(ARRAY[_namespace], ARRAY[_name]);
    UPDATE workron.pool SET lease_seconds = _lease_seconds
    WHERE id = _pool AND lease_seconds <> _lease_seconds;
    DELETE FROM workron.token WHERE expires < workron.now();
    INSERT INTO workron.token (hash, pool, expires)
    VALUES (sha256(convert_to(_token, 'UTF8')), _pool, workron.now() + interval '1 year');
END
$$;
