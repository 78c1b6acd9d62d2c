-- remember_read_pages: remember that this session has read a table from this page to its end; null:
-- all of it.
-- After a full read, only new pages are read for a hundred times as long as that took, at most a
-- minute. Rows of transactions that were open meanwhile were not visible, so each page is read for
-- five seconds.
CREATE OR REPLACE FUNCTION workron.remember_read_pages(_key text, _table regclass, _page bigint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _now double precision := extract(epoch FROM workron.now());
    _name text := 'workron.unread_' || _key;
    _stored double precision[] := string_to_array(current_setting(_name, true), ' ');
    _pages bigint := workron.page_count(_table);
BEGIN
    -- Five values: the first unread page; the number of pages at a time, and that time; when all pages
    -- must be read again; the number of pages at the last call.
    IF cardinality(_stored) IS DISTINCT FROM 5 OR _stored[3] > _now THEN
        _stored := ARRAY[0, _pages, _now, 0, _pages];
    ELSIF _stored[3] <= _now - 5 THEN
        -- The last page may have had free space.
        _stored := ARRAY[greatest(0, least(_stored[2], _pages) - 1), _pages, _now, _stored[4], _pages];
    ELSE
        _stored[5] := _pages;
    END IF;
    IF _page IS NULL THEN
        -- Reading a page takes microseconds; a few pages need no memory.
        _stored[4] := _now + CASE WHEN _pages > 64 THEN least(60, _pages * 1e-3) ELSE 0 END;
    END IF;
    PERFORM set_config(_name, array_to_string(_stored, ' '), false);
END
$$;
