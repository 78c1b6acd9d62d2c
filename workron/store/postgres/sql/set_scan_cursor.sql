-- set_scan_cursor: set this session's scan cursor of a pool, its expiry, and the time of the next
-- scan of earlier rows; a null job removes it.
CREATE OR REPLACE FUNCTION workron.set_scan_cursor(
    _pool integer, _priority integer, _job bigint, _until double precision, _looks_at double precision
) RETURNS void
LANGUAGE sql
AS $$
    SELECT set_config('workron.scan_cursor_' || _pool, concat_ws(' ', _priority, _job, _until, _looks_at), false)
$$;
