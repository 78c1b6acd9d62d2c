-- server_start: identify this start of the server; it changes with a restart and a failover.
CREATE OR REPLACE FUNCTION workron.server_start() RETURNS text
LANGUAGE sql STABLE
AS $$ SELECT extract(epoch FROM pg_postmaster_start_time())::text $$;
