-- refresh_scan_starts: move the scan starts of pools after this one to their first ready job.
-- It returns the pool after which the next call goes on.
--
-- `ready_claim_order` is read in order of rank (the negated priority) and age. An open transaction
-- anywhere keeps the index entries of all jobs that were claimed since: after an hour, millions of dead
-- entries precede the first ready job. So claims begin at the scan start of their pool, if it has one.
--
-- A scan start has the snapshot in which it was found. Each ready job that is visible in that snapshot
-- is at the start, after it, or in its list of early jobs. All others were inserted by transactions
-- that were open then, or began later, and are found by `ready.inserted_by`, or by `run.inserted_by` of
-- a large run, which saves an index entry for each job of a submission: so the next start is the
-- first job from the start on, and the early jobs are those before it that are still ready, and
-- the first ones of those others. The position does not depend on times, and two maintainers at once,
-- or none for some time, do no harm.
--
-- Claims take early jobs first, and then read on at the start: a job of a higher priority or of an
-- older run does not move the start back to where dead entries follow it. Only if there are more than
-- a hundred, the start moves back to the first of them, and the list is empty.
--
-- A job before the start that was inserted after the refresh waits for the next one, unless a claim
-- finds too few others.
CREATE OR REPLACE FUNCTION workron.refresh_scan_starts(_after integer) RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    _old workron.scan_start;
    _new workron.scan_start;
    _rows_before bigint := workron.count_rows_read();
    _rows_read bigint := 0;
BEGIN
    IF pg_stat_get_dead_tuples('workron.ready'::regclass) < 5000 THEN
        DELETE FROM workron.scan_start;
        RETURN 0;
    END IF;
    FOR _old IN SELECT s.* FROM workron.pool p CROSS JOIN LATERAL workron.read_scan_start(p.id) s
                WHERE p.id > _after ORDER BY p.id
    LOOP
        -- One statement, so that the snapshot is the one in which the jobs are read.
        WITH early AS MATERIALIZED (
            SELECT b.rank, b.job, count(*) OVER () > 100 AS is_long
            FROM workron.ready_before_start(_old, 101) b
        )
        SELECT c.rank, c.job, pg_current_snapshot(),
               ARRAY(SELECT e.job FROM early e WHERE NOT e.is_long ORDER BY e.rank, e.job)
        INTO _new.rank, _new.job, _new.snapshot, _new.early FROM (
            SELECT e.rank, e.job FROM early e WHERE e.is_long
            UNION ALL
            (SELECT -priority, job FROM workron.ready
             WHERE pool = _old.pool AND NOT alone AND (-priority, job) >= (_old.rank, _old.job)
             ORDER BY -priority, job LIMIT 1)
            UNION ALL SELECT 2147483647, 9223372036854775807
        ) c(rank, job) ORDER BY c.rank, c.job LIMIT 1;
        -- A pool needs no start as long as a scan from the beginning reads few dead entries.
        IF _old.id IS NOT NULL OR workron.count_rows_read() - _rows_before - _rows_read >= 1000 THEN
            DELETE FROM workron.scan_start WHERE pool = _old.pool AND id = _old.id;
            INSERT INTO workron.scan_start (pool, rank, job, early, snapshot, refreshed_at)
            VALUES (_old.pool, _new.rank, _new.job, _new.early, _new.snapshot, workron.now());
        END IF;
        _rows_read := workron.count_rows_read() - _rows_before;
        -- The starts found so far must be committed before they are too old to be used.
        IF _rows_read > 1000000 THEN
            RETURN _old.pool;
        END IF;
    END LOOP;
    RETURN 0;
END
$$;
