-- gather: tell wide rows what has arrived and was left, as their locks were not free; gives how many.
-- Waiting -> Queued (ready)
CREATE OR REPLACE FUNCTION workron.gather(_limit integer) RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    _wide bigint[];
    _locked bigint[];
BEGIN
    SELECT array_agg(DISTINCT job) INTO _wide
    FROM (SELECT job FROM workron.arrival ORDER BY id LIMIT _limit) oldest;
    IF _wide IS NULL THEN
        RETURN 0;
    END IF;
    _locked := workron.sum_arrivals(_wide);
    PERFORM workron.decide(_locked);
    -- A row that was cancelled needs no arrivals any more.
    DELETE FROM workron.arrival a WHERE a.job = ANY (_wide)
        AND EXISTS (SELECT 1 FROM workron.done d WHERE d.job = a.job);
    RETURN cardinality(_locked);
END
$$;
