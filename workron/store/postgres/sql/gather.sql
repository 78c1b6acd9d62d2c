-- gather: tell wide rows what has arrived and was left, as their locks were not free; gives how many.
-- Waiting -> Queued (ready)
CREATE OR REPLACE FUNCTION workron.gather(_limit integer) RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    _wide bigint[];
    _locked bigint[];
    _count integer;
    _page bigint := workron.unread('arrival', false);
    _from tid := format('(%s,0)', coalesce(_page, 0));
BEGIN
    SELECT array_agg(DISTINCT job), count(*) INTO _wide, _count
    FROM (SELECT job FROM workron.arrival WHERE ctid >= _from LIMIT _limit) left_over;
    IF _wide IS NOT NULL THEN
        _locked := workron.sum_arrivals(_wide);
    END IF;
    PERFORM workron.has_read('arrival', 'workron.arrival', _page)
    WHERE _count < _limit AND cardinality(_locked) IS NOT DISTINCT FROM cardinality(_wide);
    IF _wide IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM workron.decide(_locked);
    -- A row that was cancelled needs no arrivals any more.
    DELETE FROM workron.arrival a WHERE a.job = ANY (_wide)
        AND EXISTS (SELECT 1 FROM workron.done d WHERE d.job = a.job);
    RETURN cardinality(_locked);
END
$$;
