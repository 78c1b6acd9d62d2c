-- walk_all: lock the first of a pool's ready jobs; a session that had to pass many that are gone leaves
-- a mark.
CREATE OR REPLACE FUNCTION workron.walk_all(_pool integer, _limit integer) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _now double precision := extract(epoch FROM workron.now());
    _passed bigint := workron.passed();
    _picked bigint[];
    _priority integer;
BEGIN
    SELECT array_agg(job), (array_agg(priority))[count(*)] INTO _picked, _priority FROM (
        SELECT job, priority FROM workron.ready WHERE pool = _pool AND NOT alone
        ORDER BY priority DESC, job LIMIT _limit FOR UPDATE SKIP LOCKED -- guard: claim
    ) p;
    _passed := workron.passed() - _passed;
    IF _passed > 1000 + 2 * _limit THEN
        PERFORM workron.has_read('ready_' || _pool, 'workron.ready', NULL);
        PERFORM workron.set_mark(
            -- Where there was none, all has been passed to the very end.
            _pool, coalesce(_priority, -2147483648),
            coalesce(_picked[cardinality(_picked)], 9223372036854775807),
            -- Passing an entry takes less than a microsecond.
            _now + least(600, greatest(0.5, _passed * 3e-5)), _now + 2);
    ELSIF (workron.mark(_pool)).job IS NOT NULL THEN
        PERFORM workron.set_mark(_pool, NULL, NULL, NULL, NULL);
    END IF;
    RETURN _picked;
END
$$;
