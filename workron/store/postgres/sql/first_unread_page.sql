-- first_unread_page: return the first page of a table that this session has not read yet; null: it
-- must read all pages.
-- Rows only pass through these tables. While a transaction is open, deleted rows keep their pages and
-- new rows go behind them, so pages that were read (`remember_read_pages`) need not be read again.
-- Since new rows can also fill free space in front, all pages are read now and then.
CREATE OR REPLACE FUNCTION workron.first_unread_page(_table text) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    _now double precision := extract(epoch FROM workron.now());
    _stored double precision[] := string_to_array(current_setting('workron.unread_' || _table, true), ' ');
BEGIN
    -- A time in the future was set before the clock was set back.
    IF _stored[3] <= _now AND _now < _stored[4] THEN
        RETURN _stored[1];
    END IF;
    RETURN NULL;
END
$$;
