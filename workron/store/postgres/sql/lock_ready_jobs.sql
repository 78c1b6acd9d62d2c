-- lock_ready_jobs: lock the first ready jobs of a pool with this scan start, by priority, then by age.
-- Jobs before the scan start are found by its next refresh, or here if too few follow it.
CREATE OR REPLACE FUNCTION workron.lock_ready_jobs(_start workron.scan_start, _limit integer) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _picked bigint[];
BEGIN
    SELECT array_agg(job) INTO _picked FROM (
        SELECT job FROM workron.ready
        WHERE pool = _start.pool AND NOT alone AND (-priority, job) >= (_start.rank, _start.job)
        ORDER BY -priority, job LIMIT _limit FOR UPDATE SKIP LOCKED -- guard: claim
    ) p;
    IF _start.id IS NOT NULL AND coalesce(cardinality(_picked), 0) < _limit THEN
        SELECT _picked || array_agg(job) INTO _picked FROM (
            SELECT job FROM workron.ready
            WHERE job = ANY (ARRAY(SELECT b.job FROM workron.ready_before_start(_start, _limit) b))
            ORDER BY -priority, job LIMIT _limit - coalesce(cardinality(_picked), 0)
            FOR UPDATE SKIP LOCKED -- guard: claim
        ) p;
    END IF;
    RETURN _picked;
END
$$;
