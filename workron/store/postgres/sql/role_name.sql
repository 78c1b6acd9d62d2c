-- role_name: what the role of a pool is called.
-- Roles belong to all databases of a server, so the name has this database in it, if only as a digest.
CREATE OR REPLACE FUNCTION workron.role_name(_namespace text, _name text) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT format('workron_%s_%s', left(_namespace || '_' || _name, 38), left(encode(sha256(
        convert_to(concat_ws('/', current_database(), _namespace, _name), 'UTF8')), 'hex'), 16))
$$;
