-- scan_ready_from_start: lock the first ready jobs of a pool with a scan from the start, and set a
-- scan cursor if it read many dead entries.
CREATE OR REPLACE FUNCTION workron.scan_ready_from_start(_pool integer, _limit integer) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _now double precision := extract(epoch FROM workron.now());
    _rows_read bigint := workron.count_rows_read();
    _picked bigint[];
    _priority integer;
BEGIN
    SELECT array_agg(job), (array_agg(priority))[count(*)] INTO _picked, _priority FROM (
        SELECT job, priority FROM workron.ready WHERE pool = _pool AND NOT alone
        ORDER BY priority DESC, job LIMIT _limit FOR UPDATE SKIP LOCKED -- guard: claim
    ) p;
    _rows_read := workron.count_rows_read() - _rows_read;
    IF _rows_read > 1000 + 2 * _limit THEN
        PERFORM workron.remember_read_pages('ready_' || _pool, 'workron.ready', NULL);
        PERFORM workron.set_scan_cursor(
            -- Without a ready job, the scan has reached the end.
            _pool, coalesce(_priority, -2147483648),
            coalesce(_picked[cardinality(_picked)], 9223372036854775807),
            -- Reading an entry takes less than a microsecond.
            _now + least(600, greatest(0.5, _rows_read * 3e-5)), _now + 2);
    ELSIF (workron.scan_cursor(_pool)).job IS NOT NULL THEN
        PERFORM workron.set_scan_cursor(_pool, NULL, NULL, NULL, NULL);
    END IF;
    RETURN _picked;
END
$$;
