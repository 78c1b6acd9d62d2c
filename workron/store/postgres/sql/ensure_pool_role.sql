-- ensure_pool_role: create or update the role of a pool, which can only run jobs.
CREATE OR REPLACE FUNCTION workron.ensure_pool_role(
    _namespace text, _name text, _password text, _connections integer
) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    _role text := workron.pool_role_name(_namespace, _name);
    _exists boolean := EXISTS (SELECT 1 FROM pg_roles WHERE rolname = _role);
    _why text;
    _hint text;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = current_user AND (rolcreaterole OR rolsuper)) THEN
        RAISE EXCEPTION 'role % may not create roles for pools: as a superuser, run `ALTER ROLE % CREATEROLE`',
            current_user, quote_ident(current_user) USING ERRCODE = 'WK004';
    END IF;
    EXECUTE format('%s ROLE %I LOGIN CONNECTION LIMIT %s PASSWORD %L',
                   CASE WHEN _exists THEN 'ALTER' ELSE 'CREATE' END, _role, _connections, _password);
    -- A grant invalidates the plans of all sessions, so none is repeated.
    IF NOT workron.has_worker_rights(_role) THEN
        PERFORM workron.grant_worker(_role);
    END IF;
    IF NOT has_database_privilege(_role, current_database(), 'CONNECT') THEN
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), _role);
    END IF;
    RETURN _role;
EXCEPTION WHEN insufficient_privilege THEN
    GET STACKED DIAGNOSTICS _why = MESSAGE_TEXT, _hint = PG_EXCEPTION_HINT;
    IF _exists AND _hint = '' THEN
        _hint := format('As a superuser, run `GRANT %I TO %I WITH ADMIN OPTION`.', _role, current_user);
    END IF;
    RAISE EXCEPTION 'cannot set up role % of pool %/%: %. %', _role, _namespace, _name, _why, _hint
        USING ERRCODE = 'WK004';
END
$$;
