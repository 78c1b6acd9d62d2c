-- open_doors: list what a role may do besides a worker's verbs, each as the statement that ends it.
CREATE OR REPLACE FUNCTION workron.open_doors(_role text) RETURNS SETOF text
LANGUAGE sql STABLE
AS $$
    -- Everybody may make temporary tables and large objects by default: room to fill a disk from.
    SELECT format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC, %I', current_database(), _role)
    WHERE has_database_privilege(_role, current_database(), 'TEMPORARY')
    UNION ALL
    SELECT format('REVOKE EXECUTE ON FUNCTION pg_catalog.%s FROM PUBLIC, %I', f, _role)
    FROM unnest(ARRAY['lo_create(oid)', 'lo_creat(integer)', 'lo_from_bytea(oid, bytea)']) f
    WHERE has_function_privilege(_role, 'pg_catalog.' || f, 'EXECUTE')
    UNION ALL
    -- Whoever restores without privileges lets everybody call what is there.
    SELECT 'REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA workron FROM PUBLIC'
    WHERE EXISTS (SELECT 1 FROM pg_proc WHERE pronamespace = 'workron'::regnamespace AND NOT prosecdef
                  AND has_function_privilege('public', oid, 'EXECUTE'))
$$;
