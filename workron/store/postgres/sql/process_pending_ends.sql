-- process_pending_ends: apply pending ends whose row was locked when they were inserted; returns the
-- number of rows.
-- Waiting -> Queued (ready)
CREATE OR REPLACE FUNCTION workron.process_pending_ends(_limit integer) RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    _wide bigint[];
    _locked bigint[];
    _count integer;
    _page bigint := workron.first_unread_page('pending_end');
    _from tid := format('(%s,0)', coalesce(_page, 0));
BEGIN
    SELECT array_agg(DISTINCT job), count(*) INTO _wide, _count
    FROM (SELECT job FROM workron.pending_end WHERE ctid >= _from LIMIT _limit) pending;
    IF _wide IS NOT NULL THEN
        _locked := workron.apply_pending_ends(_wide);
    END IF;
    PERFORM workron.remember_read_pages('pending_end', _page)
    WHERE _count < _limit AND cardinality(_locked) IS NOT DISTINCT FROM cardinality(_wide);
    IF _wide IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM workron.resolve_waiting(_locked);
    -- A job that has ended otherwise needs them no more.
    DELETE FROM workron.pending_end a WHERE a.job = ANY (_wide)
        AND EXISTS (SELECT 1 FROM workron.done d WHERE d.job = a.job);
    RETURN cardinality(_locked);
END
$$;
