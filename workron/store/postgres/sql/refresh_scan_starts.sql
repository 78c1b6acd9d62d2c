-- refresh_scan_starts: move the scan start of each pool to its first ready job.
--
-- `ready_claim_order` is read in order of rank (the negated priority) and age. An open transaction
-- anywhere keeps the index entries of all jobs that were claimed since: after an hour, millions of dead
-- entries precede the first ready job. So claims begin at the scan start of their pool, if it has one.
--
-- A scan start has the snapshot in which it was found. Each ready job that is visible in that snapshot
-- is at the start or after it. All others were inserted by transactions that were open then, or began
-- later, and are found by `ready.inserted_by`: so the next start is the first job from the start on, or
-- the first one of those. The position does not depend on times, and two maintainers at once, or none for
-- some time, do no harm.
--
-- A job before the start, of a higher priority or of an older run, waits for the next refresh, unless a
-- claim finds too few jobs after the start.
CREATE OR REPLACE FUNCTION workron.refresh_scan_starts() RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _old workron.scan_start;
    _new workron.scan_start;
    _rows_read bigint;
BEGIN
    IF pg_stat_get_dead_tuples('workron.ready'::regclass) < 5000 THEN
        DELETE FROM workron.scan_start;
        RETURN;
    END IF;
    FOR _old IN SELECT s.* FROM workron.pool p CROSS JOIN LATERAL workron.read_scan_start(p.id) s LOOP
        _rows_read := workron.count_rows_read();
        -- One statement, so that the snapshot is the one in which the jobs are read.
        SELECT c.rank, c.job, pg_current_snapshot() INTO _new.rank, _new.job, _new.snapshot FROM (
            (SELECT -priority, job FROM workron.ready
             WHERE pool = _old.pool AND NOT alone AND (-priority, job) >= (_old.rank, _old.job)
             ORDER BY -priority, job LIMIT 1)
            UNION ALL SELECT b.rank, b.job FROM workron.ready_before_start(_old, 1) b
            UNION ALL SELECT 2147483647, 9223372036854775807
        ) c(rank, job) ORDER BY c.rank, c.job LIMIT 1;
        -- A pool needs no start as long as a scan from the beginning reads few dead entries.
        CONTINUE WHEN _old.id IS NULL AND workron.count_rows_read() - _rows_read < 1000;
        DELETE FROM workron.scan_start WHERE pool = _old.pool AND id = _old.id;
        INSERT INTO workron.scan_start (pool, rank, job, snapshot, refreshed_at)
        VALUES (_old.pool, _new.rank, _new.job, _new.snapshot, workron.now());
    END LOOP;
END
$$;
