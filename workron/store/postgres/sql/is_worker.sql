-- is_worker: whether a role can run jobs, and do nothing else.
CREATE OR REPLACE FUNCTION workron.is_worker(_role text) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT has_schema_privilege(_role, 'workron', 'USAGE')
       AND NOT EXISTS (SELECT 1 FROM workron.open_doors(_role))
       -- What acts for its owner is a worker's verb.
       AND NOT EXISTS (SELECT 1 FROM pg_proc WHERE pronamespace = 'workron'::regnamespace AND prosecdef
                       AND NOT has_function_privilege(_role, oid, 'EXECUTE'))
$$;
