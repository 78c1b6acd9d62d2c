-- has_worker_rights: return whether a role can run jobs, and nothing else.
CREATE OR REPLACE FUNCTION workron.has_worker_rights(_role text) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT has_schema_privilege(_role, 'workron', 'USAGE')
       AND NOT EXISTS (SELECT 1 FROM workron.list_excess_rights(_role))
       -- The functions of a worker are those with SECURITY DEFINER.
       AND NOT EXISTS (SELECT 1 FROM pg_proc WHERE pronamespace = 'workron'::regnamespace AND prosecdef
                       AND NOT has_function_privilege(_role, oid, 'EXECUTE'))
$$;
