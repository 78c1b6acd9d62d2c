-- scan_ready_after_cursor: lock the first ready jobs after this session's scan cursor, and move the
-- cursor.
CREATE OR REPLACE FUNCTION workron.scan_ready_after_cursor(_pool integer, _limit integer) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _cursor record := workron.scan_cursor(_pool);
    _picked bigint[];
    _priority integer;
    _rows_read bigint;
BEGIN
    SELECT array_agg(job) INTO _picked FROM (
        SELECT job FROM workron.ready
        WHERE pool = _pool AND NOT alone AND priority = _cursor.priority AND job > _cursor.job
        ORDER BY priority DESC, job LIMIT _limit FOR UPDATE SKIP LOCKED -- guard: claim
    ) p;
    IF cardinality(_picked) = _limit THEN
        PERFORM workron.set_scan_cursor(_pool, _cursor.priority, _picked[_limit], _cursor.until, _cursor.looks_at);
        RETURN _picked;
    END IF;
    _rows_read := workron.count_rows_read();
    SELECT _picked || array_agg(job), (array_agg(priority))[count(*)] INTO _picked, _priority FROM (
        SELECT job, priority FROM workron.ready
        WHERE pool = _pool AND NOT alone AND priority < _cursor.priority
        ORDER BY priority DESC, job LIMIT _limit - coalesce(cardinality(_picked), 0)
        FOR UPDATE SKIP LOCKED -- guard: claim
    ) p;
    IF _picked IS NULL OR cardinality(_picked) < _limit AND workron.count_rows_read() - _rows_read > 1000 THEN
        -- The scan has reached the end.
        PERFORM workron.set_scan_cursor(_pool, -2147483648, 9223372036854775807, _cursor.until, _cursor.looks_at);
    ELSE
        PERFORM workron.set_scan_cursor(
            _pool, coalesce(_priority, _cursor.priority), _picked[cardinality(_picked)], _cursor.until,
            _cursor.looks_at);
    END IF;
    RETURN _picked;
END
$$;
