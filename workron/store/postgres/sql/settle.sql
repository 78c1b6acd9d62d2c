-- settle: one bounded step of what was left to do after an end: skips and groups passed on, arrivals
-- summed. Sweeps that were left over are not gone on with here: they lock other places after this has
-- locked waiting jobs.
CREATE OR REPLACE FUNCTION workron.settle(_limit integer) RETURNS integer
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    _ended bigint[];
    _wide bigint[];
    _moved integer := 0;
BEGIN
    WITH picked AS MATERIALIZED (
        SELECT job FROM workron.unsettled ORDER BY job LIMIT _limit FOR UPDATE SKIP LOCKED
    ), taken AS (
        DELETE FROM workron.unsettled u USING picked p WHERE u.job = p.job RETURNING u.job
    )
    SELECT array_agg(job) INTO _ended FROM taken;
    IF _ended IS NOT NULL THEN
        _moved := cardinality(_ended);
        PERFORM workron.settle_ends(_ended);
    END IF;

    SELECT array_agg(DISTINCT job) INTO _wide
    FROM (SELECT job FROM workron.arrival ORDER BY id LIMIT _limit) oldest;
    IF _wide IS NOT NULL THEN
        _moved := _moved + cardinality(workron.sum_arrivals(_wide));
        PERFORM workron.decide(_wide);
        -- A row that was cancelled needs no arrivals any more.
        DELETE FROM workron.arrival a WHERE a.job = ANY (_wide)
            AND EXISTS (SELECT 1 FROM workron.done d WHERE d.job = a.job);
    END IF;

    RETURN _moved;
END
$$;
