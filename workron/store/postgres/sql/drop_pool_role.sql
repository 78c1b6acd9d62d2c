-- drop_pool_role: drop the role of a pool, or disable it and return the statements that a superuser
-- has to run.
CREATE OR REPLACE FUNCTION workron.drop_pool_role(_role text) RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = _role) THEN
        RETURN NULL;
    END IF;
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
        RETURN format('DROP OWNED BY %I; DROP ROLE %I;', _role, _role);
    END;
    RETURN NULL;
END
$$;
