-- passed: what this transaction has passed of the walk's index, in entries.
-- Those that a scan has marked as dead are not counted one by one; a page of them costs as much as ten.
CREATE OR REPLACE FUNCTION workron.passed() RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    SELECT pg_stat_get_xact_tuples_returned('workron.ready_walk'::regclass)
           + pg_stat_get_xact_blocks_fetched('workron.ready_walk'::regclass) * 10
$$;
