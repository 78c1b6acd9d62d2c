-- lock_ready_jobs: lock the first ready jobs of a pool with this scan start, by priority, then by age.
-- Jobs before the scan start are its early jobs. The next refresh finds others, or this function if
-- there are too few jobs.
CREATE OR REPLACE FUNCTION workron.lock_ready_jobs(_start workron.scan_start, _limit integer) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _picked bigint[] := '{}';
BEGIN
    IF _start.early <> '{}' THEN
        _picked := ARRAY(
            SELECT locked.job FROM unnest(_start.early) AS early(job)
            CROSS JOIN LATERAL (
                SELECT job FROM workron.ready
                WHERE job = early.job AND NOT alone AND (-priority, job) < (_start.rank, _start.job)
                FOR UPDATE SKIP LOCKED -- guard: claim
            ) locked LIMIT _limit
        );
    END IF;
    IF cardinality(_picked) < _limit THEN
        _picked := _picked || ARRAY(
            SELECT job FROM workron.ready
            WHERE pool = _start.pool AND NOT alone AND (-priority, job) >= (_start.rank, _start.job)
            ORDER BY -priority, job LIMIT _limit - cardinality(_picked)
            FOR UPDATE SKIP LOCKED -- guard: claim
        );
    END IF;
    IF _start.id IS NOT NULL AND cardinality(_picked) < _limit THEN
        _picked := _picked || ARRAY(
            -- More than needed: other claims have locked some of them.
            SELECT locked.job FROM workron.ready_before_start(_start, _limit + 1000) late
            CROSS JOIN LATERAL (
                SELECT job FROM workron.ready WHERE job = late.job AND job <> ALL (_picked)
                FOR UPDATE SKIP LOCKED -- guard: claim
            ) locked LIMIT _limit - cardinality(_picked)
        );
    END IF;
    RETURN nullif(_picked, '{}');
END
$$;
