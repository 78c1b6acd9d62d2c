-- propagate: propagate a bounded number of ends that were left over.
-- Interrupted bulk updates are not continued here: they would lock other tables after this has locked
-- waiting jobs.
CREATE OR REPLACE FUNCTION workron.propagate(_limit integer) RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    _ended bigint[];
    _moved integer := 0;
    _page bigint := workron.first_unread_page('unpropagated');
    _from tid := format('(%s,0)', coalesce(_page, 0));
BEGIN
    WITH taken AS (
        DELETE FROM workron.unpropagated WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM workron.unpropagated WHERE ctid >= _from LIMIT _limit FOR UPDATE SKIP LOCKED
        )) RETURNING job
    )
    SELECT array_agg(job) INTO _ended FROM taken;
    PERFORM workron.remember_read_pages('unpropagated', _page)
    WHERE cardinality(_ended) IS DISTINCT FROM _limit;
    IF _ended IS NOT NULL THEN
        _moved := cardinality(_ended);
        PERFORM workron.propagate_ends(_ended);
    END IF;

    RETURN _moved + workron.process_pending_ends(_limit);
END
$$;
