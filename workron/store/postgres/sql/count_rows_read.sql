-- count_rows_read: return what this transaction has read of `ready_claim_order`, in entries.
-- Entries that are marked as dead are not counted one by one; a page of them costs as much as ten
-- entries.
CREATE OR REPLACE FUNCTION workron.count_rows_read() RETURNS bigint
LANGUAGE sql VOLATILE
AS $$
    SELECT pg_stat_get_xact_tuples_returned('workron.ready_claim_order'::regclass)
           + pg_stat_get_xact_blocks_fetched('workron.ready_claim_order'::regclass) * 10
$$;
