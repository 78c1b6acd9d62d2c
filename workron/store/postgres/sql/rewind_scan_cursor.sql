-- rewind_scan_cursor: let this session's next scan find a job that was made ready before its scan
-- cursor.
-- The ids of a workflow are consecutive, so a near job is near in the index: the cursor moves back to
-- it. For any other job the next scan reads earlier rows first.
CREATE OR REPLACE FUNCTION workron.rewind_scan_cursor(_pool integer, _priority integer, _job bigint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _cursor record := workron.scan_cursor(_pool);
BEGIN
    IF _cursor.priority = _priority AND _job <= _cursor.job AND _cursor.job < _job + 10000 THEN
        PERFORM workron.set_scan_cursor(_pool, _priority, _job - 1, _cursor.until, _cursor.looks_at);
    ELSIF (_cursor.priority, -_cursor.job) < (_priority, -_job + 1) THEN
        PERFORM workron.set_scan_cursor(_pool, _cursor.priority, _cursor.job, _cursor.until, 0);
    END IF;
END
$$;
