-- page_count: return the number of pages of a table.
CREATE OR REPLACE FUNCTION workron.page_count(_table regclass) RETURNS bigint
LANGUAGE sql VOLATILE
AS $$ SELECT pg_relation_size(_table) / current_setting('block_size')::bigint $$;
