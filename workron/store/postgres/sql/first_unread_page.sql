-- first_unread_page: return the first page of a table that this session has not read yet; null: it
-- must read all pages.
-- Rows only pass through these tables. While a transaction is open, deleted rows keep their pages and
-- new rows go behind them, so pages that were read (`remember_read_pages`) need not be read again.
-- Since new rows can also fill free space in front, all pages are read now and then. A caller that
-- polls often reads only the newest pages.
CREATE OR REPLACE FUNCTION workron.first_unread_page(_key text, _newest boolean) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    _now double precision := extract(epoch FROM workron.now());
    _stored double precision[] := string_to_array(current_setting('workron.unread_' || _key, true), ' ');
BEGIN
    -- A time in the future was set before the clock was set back.
    IF _stored[3] <= _now AND _now < _stored[4] THEN
        RETURN CASE WHEN _newest THEN greatest(_stored[1], _stored[5] - 16) ELSE _stored[1] END;
    END IF;
    RETURN NULL;
END
$$;
