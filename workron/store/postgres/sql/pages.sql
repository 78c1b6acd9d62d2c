-- pages: how many pages a table has.
CREATE OR REPLACE FUNCTION workron.pages(_table regclass) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$ SELECT pg_relation_size(_table) / current_setting('block_size')::bigint $$;
