-- revoke_pool: undo `grant_pool`, unless the pool has workers. A role that cannot be dropped is
-- disabled; `remaining` has the statements that a superuser has to run.
CREATE OR REPLACE FUNCTION workron.revoke_pool(_namespace text, _name text)
RETURNS TABLE (is_revoked boolean, remaining text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _pool workron.pool;
    _role text := workron.pool_role_name(_namespace, _name);
BEGIN
    PERFORM 1 FROM workron.meta WHERE key = 'database' FOR UPDATE; -- guard: revoke_pool
    SELECT * INTO _pool FROM workron.pool WHERE namespace = _namespace AND name = _name;
    IF EXISTS (SELECT 1 FROM workron.worker WHERE pool = _pool.id) THEN
        is_revoked := false;
        RETURN NEXT;
        RETURN;
    END IF;
    -- The other tokens of a pool with a role worked only for that role.
    DELETE FROM workron.token WHERE pool = _pool.id AND (granted OR _pool.role IS NOT NULL);
    UPDATE workron.pool SET role = NULL WHERE id = _pool.id AND role IS NOT NULL;
    is_revoked := true;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = _role) THEN
        EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA workron FROM %I', _role);
        EXECUTE format('REVOKE ALL ON SCHEMA workron FROM %I', _role);
        BEGIN
            EXECUTE format('ALTER ROLE %I NOLOGIN', _role);
        EXCEPTION WHEN insufficient_privilege THEN
            NULL; -- Another role created it, for example before the database was restored here.
        END;
        BEGIN
            EXECUTE format('REVOKE ALL ON DATABASE %I FROM %I', current_database(), _role);
            EXECUTE format('DROP ROLE %I', _role);
        EXCEPTION WHEN insufficient_privilege OR dependent_objects_still_exist THEN
            remaining := format('DROP OWNED BY %I; DROP ROLE %I;', _role, _role);
        END;
    END IF;
    RETURN NEXT;
END
$$;
