-- scan_ready: lock the first ready jobs of a pool, by priority, then by age.
--
-- The scan cursor. `ready_claim_order` is read from its beginning. An open transaction anywhere keeps the
-- index entries of all jobs that were claimed since: after an hour, millions of dead entries precede the
-- first ready job, and each claim would read them. So a session that had to read many remembers in a
-- setting, the scan cursor of the pool, where it stopped (`priority`, `job`).
--
-- - No valid cursor: scan from the start; set a cursor if more than 1000 dead entries were read. It is
--   valid for a hundred times as long as the scan took, at most 10 minutes.
-- - Valid cursor: scan the entries after it, and move it.
-- - Every 2 s, and when nothing follows the cursor: scan earlier rows, which were added before the cursor,
--   in the pages of the table that this session has not read yet (`first_unread_page`).
-- - Jobs that this session makes ready move the cursor back, or have earlier rows scanned next.
--
-- So a job of higher priority, or of an older run, may wait 2 s behind the cursor.
CREATE OR REPLACE FUNCTION workron.scan_ready(_pool integer, _limit integer) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _cursor record := workron.scan_cursor(_pool);
    _picked bigint[];
BEGIN
    IF NOT _cursor.holds THEN
        RETURN workron.scan_ready_from_start(_pool, _limit);
    END IF;
    IF _cursor.looks THEN
        _picked := workron.scan_earlier_rows(_pool, _limit, false);
    END IF;
    IF cardinality(_picked) = _limit THEN
        RETURN _picked;
    END IF;
    _picked := _picked || workron.scan_ready_after_cursor(_pool, _limit - coalesce(cardinality(_picked), 0));
    IF _picked IS NULL AND NOT _cursor.looks THEN
        _picked := workron.scan_earlier_rows(_pool, _limit, _cursor.has_just_looked);
    END IF;
    RETURN _picked;
END
$$;
