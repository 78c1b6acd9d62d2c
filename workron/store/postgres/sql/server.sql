-- server: which run of which server this is; another one after a restart and after a failover.
CREATE OR REPLACE FUNCTION workron.server() RETURNS text
LANGUAGE sql STABLE
AS $$ SELECT extract(epoch FROM pg_postmaster_start_time())::text $$;
