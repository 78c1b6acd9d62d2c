-- scan_cursor: read this session's scan cursor of a pool; see `scan_ready`.
-- `holds`: it is valid. `looks`: earlier rows are due to be scanned. `has_just_looked`: they were
-- scanned less than 0.1 s ago.
CREATE OR REPLACE FUNCTION workron.scan_cursor(
    _pool integer, OUT priority integer, OUT job bigint, OUT until double precision,
    OUT looks_at double precision, OUT holds boolean, OUT looks boolean,
    OUT has_just_looked boolean)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    _now double precision := extract(epoch FROM workron.now());
    _stored text[] := string_to_array(current_setting('workron.scan_cursor_' || _pool, true), ' ');
BEGIN
    priority := _stored[1];
    job := _stored[2];
    until := _stored[3];
    looks_at := _stored[4];
    holds := coalesce(until > _now, false);
    -- A time too far in the future was set before the clock was set back.
    looks := looks_at <= _now OR looks_at > _now + 2;
    has_just_looked := looks_at > _now + 1.9;
END
$$;
