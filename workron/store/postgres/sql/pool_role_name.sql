-- pool_role_name: return the name of a pool's role.
-- Roles are shared by all databases of a server, so the name has a digest of the database's name.
CREATE OR REPLACE FUNCTION workron.pool_role_name(_namespace text, _name text) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT format('workron_%s_%s', left(_namespace || '_' || _name, 38), left(encode(sha256(
        convert_to(concat_ws('/', current_database(), _namespace, _name), 'UTF8')), 'hex'), 16))
$$;
