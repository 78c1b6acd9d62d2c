-- walk_on: lock the first of a pool's ready jobs behind this session's mark, and move the mark.
CREATE OR REPLACE FUNCTION workron.walk_on(_pool integer, _limit integer) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _mark record := workron.mark(_pool);
    _picked bigint[];
    _priority integer;
    _passed bigint;
BEGIN
    SELECT array_agg(job) INTO _picked FROM (
        SELECT job FROM workron.ready
        WHERE pool = _pool AND NOT alone AND priority = _mark.priority AND job > _mark.job
        ORDER BY priority DESC, job LIMIT _limit FOR UPDATE SKIP LOCKED -- guard: claim
    ) p;
    IF cardinality(_picked) = _limit THEN
        PERFORM workron.set_mark(_pool, _mark.priority, _picked[_limit], _mark.until, _mark.looks_at);
        RETURN _picked;
    END IF;
    _passed := workron.passed();
    SELECT _picked || array_agg(job), (array_agg(priority))[count(*)] INTO _picked, _priority FROM (
        SELECT job, priority FROM workron.ready
        WHERE pool = _pool AND NOT alone AND priority < _mark.priority
        ORDER BY priority DESC, job LIMIT _limit - coalesce(cardinality(_picked), 0)
        FOR UPDATE SKIP LOCKED -- guard: claim
    ) p;
    IF _picked IS NULL OR cardinality(_picked) < _limit AND workron.passed() - _passed > 1000 THEN
        -- All has been passed, to the very end.
        PERFORM workron.set_mark(_pool, -2147483648, 9223372036854775807, _mark.until, _mark.looks_at);
    ELSE
        PERFORM workron.set_mark(
            _pool, coalesce(_priority, _mark.priority), _picked[cardinality(_picked)], _mark.until,
            _mark.looks_at);
    END IF;
    RETURN _picked;
END
$$;
