-- unread: the page of a table from which on this session has to read it; none: all of it.
-- Through some tables rows only pass. While anybody's transaction is open, what is gone stays in their
-- pages, and what is new mostly comes behind: who has read them (`has_read`) need not do so again. There
-- may be room in front; so now and then all is read. Who looks often reads only the newest pages.
CREATE OR REPLACE FUNCTION workron.unread(_reading text, _newest boolean) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    _now double precision := extract(epoch FROM workron.now());
    _told double precision[] := string_to_array(current_setting('workron.unread_' || _reading, true), ' ');
BEGIN
    -- One of a time to come is of before the clock was put back.
    IF _told[3] <= _now AND _now < _told[4] THEN
        RETURN CASE WHEN _newest THEN greatest(_told[1], _told[5] - 16) ELSE _told[1] END;
    END IF;
    RETURN NULL;
END
$$;
