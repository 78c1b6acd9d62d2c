-- remember_read_pages: remember that this session has read a table from this page to its end; null:
-- all of it.
-- After a full read, only new pages are read for a hundred times as long as that took, at most a
-- minute. Rows of transactions that were open meanwhile were not visible, so each page is read for
-- five seconds.
CREATE OR REPLACE FUNCTION workron.remember_read_pages(_table text, _page bigint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _now double precision := extract(epoch FROM workron.now());
    _name text := 'workron.unread_' || _table;
    _stored double precision[] := string_to_array(current_setting(_name, true), ' ');
    _pages bigint := pg_relation_size(('workron.' || _table)::regclass) / current_setting('block_size')::bigint;
BEGIN
    -- The first unread page; the number of pages at a time, and that time; when all pages must be read
    -- again.
    IF cardinality(_stored) IS DISTINCT FROM 4 OR _stored[3] > _now THEN
        _stored := ARRAY[0, _pages, _now, 0];
    ELSIF _stored[3] <= _now - 5 THEN
        -- The last page may have had free space.
        _stored := ARRAY[greatest(0, least(_stored[2], _pages) - 1), _pages, _now, _stored[4]];
    END IF;
    IF _page IS NULL THEN
        -- Reading a page takes microseconds; a few pages need no memory.
        _stored[4] := _now + CASE WHEN _pages > 64 THEN least(60, _pages * 1e-3) ELSE 0 END;
    END IF;
    PERFORM set_config(_name, array_to_string(_stored, ' '), false);
END
$$;
