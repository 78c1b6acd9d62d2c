-- walk: lock the first of a pool's ready jobs, by priority, then by age.
-- One that had to pass many entries of jobs that are gone has the next ones of its session begin where
-- it ended. These miss what is of a higher priority or has come before the mark; so it holds for a
-- small multiple of the time that it saves, and what an end frees takes it back (`pull_mark`).
CREATE OR REPLACE FUNCTION workron.walk(_pool integer, _limit integer) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _mark record := workron.mark(_pool);
    _now double precision := extract(epoch FROM workron.now());
    _picked bigint[];
    _priority integer;
    _passed bigint;
BEGIN
    IF _mark.holds THEN
        SELECT array_agg(job) INTO _picked FROM (
            SELECT job FROM workron.ready
            WHERE pool = _pool AND NOT alone AND priority = _mark.priority AND job > _mark.job
            ORDER BY priority DESC, job LIMIT _limit FOR UPDATE SKIP LOCKED -- guard: claim
        ) p;
        IF cardinality(_picked) = _limit THEN
            PERFORM workron.set_mark(_pool, _mark.priority, _picked[_limit], _mark.until);
            RETURN _picked;
        END IF;
        SELECT _picked || array_agg(job), (array_agg(priority))[count(*)] INTO _picked, _priority FROM (
            SELECT job, priority FROM workron.ready
            WHERE pool = _pool AND NOT alone AND priority < _mark.priority
            ORDER BY priority DESC, job LIMIT _limit - coalesce(cardinality(_picked), 0)
            FOR UPDATE SKIP LOCKED -- guard: claim
        ) p;
        PERFORM workron.set_mark(
            _pool, coalesce(_priority, _mark.priority), _picked[cardinality(_picked)], _mark.until)
        WHERE _picked IS NOT NULL;
        RETURN _picked;
    END IF;

    _passed := pg_stat_get_xact_tuples_returned('workron.ready_walk'::regclass)
        + pg_stat_get_xact_blocks_fetched('workron.ready_walk'::regclass);
    SELECT array_agg(job), (array_agg(priority))[count(*)] INTO _picked, _priority FROM (
        SELECT job, priority FROM workron.ready WHERE pool = _pool AND NOT alone
        ORDER BY priority DESC, job LIMIT _limit FOR UPDATE SKIP LOCKED -- guard: claim
    ) p;
    _passed := pg_stat_get_xact_tuples_returned('workron.ready_walk'::regclass)
        + pg_stat_get_xact_blocks_fetched('workron.ready_walk'::regclass) - _passed;
    PERFORM workron.set_mark(
        _pool, coalesce(_priority, _mark.priority), coalesce(_picked[cardinality(_picked)], _mark.job),
        -- Passing an entry takes less than a microsecond, and so does a page of entries that a scan
        -- has marked as dead, which are not counted one by one.
        CASE WHEN _passed > 1000 + 2 * _limit THEN _now + least(60, greatest(0.5, _passed * 3e-5)) ELSE 0 END)
    WHERE _picked IS NOT NULL OR _mark.job IS NOT NULL;
    RETURN _picked;
END
$$;
