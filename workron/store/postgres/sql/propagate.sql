-- propagate: one bounded step of what was left to do after an end: skips and groups passed on, arrivals
-- summed. Sweeps that were left over are not gone on with here: they lock other places after this has
-- locked waiting jobs.
CREATE OR REPLACE FUNCTION workron.propagate(_limit integer) RETURNS integer
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    _ended bigint[];
    _moved integer := 0;
    _page bigint := workron.unread('unsettled', false);
    _from tid := format('(%s,0)', coalesce(_page, 0));
BEGIN
    WITH taken AS (
        DELETE FROM workron.unsettled WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM workron.unsettled WHERE ctid >= _from LIMIT _limit FOR UPDATE SKIP LOCKED
        )) RETURNING job
    )
    SELECT array_agg(job) INTO _ended FROM taken;
    PERFORM workron.has_read('unsettled', 'workron.unsettled', _page)
    WHERE cardinality(_ended) IS DISTINCT FROM _limit;
    IF _ended IS NOT NULL THEN
        _moved := cardinality(_ended);
        PERFORM workron.settle_ends(_ended);
    END IF;

    RETURN _moved + workron.gather(_limit);
END
$$;
