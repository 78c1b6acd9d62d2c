-- revoke_pool: undo `grant_pool`, unless the pool has workers; returns what is left to do.
CREATE OR REPLACE FUNCTION workron.revoke_pool(_namespace text, _name text)
RETURNS TABLE (is_revoked boolean, remaining text)
LANGUAGE plpgsql
AS $$
DECLARE
    _pool workron.pool;
BEGIN
    PERFORM 1 FROM workron.meta WHERE key = 'database' FOR UPDATE; -- guard: revoke_pool
    SELECT * INTO _pool FROM workron.pool WHERE namespace = _namespace AND name = _name;
    IF EXISTS (SELECT 1 FROM workron.worker WHERE pool = _pool.id) THEN
        RETURN QUERY SELECT false, NULL::text;
        RETURN;
    END IF;
    -- The other tokens of a pool with a role worked only for that role.
    DELETE FROM workron.token WHERE pool = _pool.id AND (granted OR _pool.role IS NOT NULL);
    UPDATE workron.pool SET role = NULL WHERE id = _pool.id AND role IS NOT NULL;
    RETURN QUERY SELECT true, workron.drop_pool_role(workron.pool_role_name(_namespace, _name));
END
$$;
