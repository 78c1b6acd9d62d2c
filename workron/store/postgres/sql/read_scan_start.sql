-- read_scan_start: return where claims begin to read the ready jobs of a pool; see
-- `refresh_scan_starts`.
CREATE OR REPLACE FUNCTION workron.read_scan_start(_pool integer) RETURNS workron.scan_start
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    _start workron.scan_start;
BEGIN
    SELECT * INTO _start FROM workron.scan_start WHERE pool = _pool ORDER BY id DESC LIMIT 1;
    -- Without a maintainer that refreshes it, claims read from the beginning. A time in the future was
    -- set before the clock was set back.
    IF _start.refreshed_at > workron.now() - interval '5 s' AND _start.refreshed_at <= workron.now() THEN
        RETURN _start;
    END IF;
    RETURN ROW(NULL, _pool, -2147483647, 0, '{}', NULL, NULL)::workron.scan_start;
END
$$;
