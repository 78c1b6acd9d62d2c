-- look_back: lock the first of a pool's ready jobs that have come before this session's mark.
-- They are in the pages that it has not read yet; an index would pass again all that is gone. Who has
-- nothing else looks often, and through the newest pages alone.
CREATE OR REPLACE FUNCTION workron.look_back(_pool integer, _limit integer, _newest boolean) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _mark record := workron.mark(_pool);
    _page bigint := workron.unread('ready_' || _pool, _newest);
    _from tid := format('(%s,0)', coalesce(_page, 0));
    _next double precision := CASE WHEN _newest THEN _mark.looks_at
                                   ELSE extract(epoch FROM workron.now()) + 2 END;
    _is_long boolean := workron.pages('workron.ready') - coalesce(_page, 0) > 1000;
    _picked bigint[];
    _priority integer;
BEGIN
    SELECT array_agg(job), (array_agg(priority))[count(*)] INTO _picked, _priority FROM (
        SELECT job, priority FROM workron.ready
        -- In words that no index answers to.
        WHERE ctid >= _from AND pool = _pool AND alone::integer = 0
          AND (priority > _mark.priority OR priority = _mark.priority AND job <= _mark.job)
        ORDER BY priority DESC, job LIMIT _limit FOR UPDATE SKIP LOCKED -- guard: claim
    ) p;
    IF cardinality(_picked) = _limit AND NOT _is_long THEN
        -- There may be more: the next one looks again.
        PERFORM workron.set_mark(_pool, _mark.priority, _mark.job, _mark.until, 0)
        WHERE NOT _newest;
        RETURN _picked;
    END IF;
    IF cardinality(_picked) = _limit THEN
        -- All that is left stands behind these, and is walked through sooner than looked for.
        PERFORM workron.set_mark(_pool, _priority, _picked[_limit], _mark.until, _next);
    ELSE
        PERFORM workron.set_mark(_pool, _mark.priority, _mark.job, _mark.until, _next);
    END IF;
    PERFORM workron.has_read('ready_' || _pool, 'workron.ready', _page);
    RETURN _picked;
END
$$;
