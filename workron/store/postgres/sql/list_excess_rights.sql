-- list_excess_rights: list what a role may do besides a worker's functions, each as the statement
-- that revokes it.
CREATE OR REPLACE FUNCTION workron.list_excess_rights(_role text) RETURNS SETOF text
LANGUAGE sql STABLE
AS $$
    -- By default, every role may create temporary tables and large objects, and fill the disk.
    SELECT format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC, %I', current_database(), _role)
    WHERE has_database_privilege(_role, current_database(), 'TEMPORARY')
    UNION ALL
    SELECT format('REVOKE EXECUTE ON FUNCTION pg_catalog.%s FROM PUBLIC, %I', f, _role)
    FROM unnest(ARRAY['lo_create(oid)', 'lo_creat(integer)', 'lo_from_bytea(oid, bytea)']) f
    WHERE has_function_privilege(_role, 'pg_catalog.' || f, 'EXECUTE')
    UNION ALL
    -- After a restore without privileges, every role may call all functions.
    SELECT 'REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA workron FROM PUBLIC'
    WHERE EXISTS (SELECT 1 FROM pg_proc WHERE pronamespace = 'workron'::regnamespace AND NOT prosecdef
                  AND has_function_privilege('public', oid, 'EXECUTE'))
$$;
