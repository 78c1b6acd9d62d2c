-- has_read: remember that this session has read a table from this page on, to the end; none: all of it.
-- Who has read all reads only what is new for a hundred times as long as it took, a minute at most.
-- What a transaction wrote that was open meanwhile was not seen; so each page is read for five seconds.
CREATE OR REPLACE FUNCTION workron.has_read(_reading text, _table regclass, _page bigint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _now double precision := extract(epoch FROM workron.now());
    _name text := 'workron.unread_' || _reading;
    _told double precision[] := string_to_array(current_setting(_name, true), ' ');
    _pages bigint := workron.pages(_table);
BEGIN
    -- From where; how many pages there were, and when that was; when all is to be read again; and how
    -- many pages there were at last.
    IF cardinality(_told) IS DISTINCT FROM 5 OR _told[3] > _now THEN
        _told := ARRAY[0, _pages, _now, 0, _pages];
    ELSIF _told[3] <= _now - 5 THEN
        -- The last page may have had room.
        _told := ARRAY[greatest(0, least(_told[2], _pages) - 1), _pages, _now, _told[4], _pages];
    ELSE
        _told[5] := _pages;
    END IF;
    IF _page IS NULL THEN
        -- A page takes some microseconds, and few take no time.
        _told[4] := _now + CASE WHEN _pages > 64 THEN least(60, _pages * 1e-3) ELSE 0 END;
    END IF;
    PERFORM set_config(_name, array_to_string(_told, ' '), false);
END
$$;
