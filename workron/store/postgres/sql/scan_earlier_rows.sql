-- scan_earlier_rows: lock the first ready jobs before this session's scan cursor.
-- It reads the pages of the table that this session has not read yet: an index scan would read all
-- dead entries again. A session that finds nothing else runs it often, and reads only the newest
-- pages.
CREATE OR REPLACE FUNCTION workron.scan_earlier_rows(_pool integer, _limit integer, _newest boolean) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _cursor record := workron.scan_cursor(_pool);
    _page bigint := workron.first_unread_page('ready_' || _pool, _newest);
    _from tid := format('(%s,0)', coalesce(_page, 0));
    _next double precision := CASE WHEN _newest THEN _cursor.looks_at
                                   ELSE extract(epoch FROM workron.now()) + 2 END;
    _is_long boolean := workron.page_count('workron.ready') - coalesce(_page, 0) > 1000;
    _picked bigint[];
    _priority integer;
BEGIN
    SELECT array_agg(job), (array_agg(priority))[count(*)] INTO _picked, _priority FROM (
        SELECT job, priority FROM workron.ready
        -- Expressions that no index matches.
        WHERE ctid >= _from AND pool = _pool AND alone::integer = 0
          AND (priority > _cursor.priority OR priority = _cursor.priority AND job <= _cursor.job)
        ORDER BY priority DESC, job LIMIT _limit FOR UPDATE SKIP LOCKED -- guard: claim
    ) p;
    IF cardinality(_picked) = _limit AND NOT _is_long THEN
        -- There may be more: the next scan reads earlier rows again.
        PERFORM workron.set_scan_cursor(_pool, _cursor.priority, _cursor.job, _cursor.until, 0)
        WHERE NOT _newest;
        RETURN _picked;
    END IF;
    IF cardinality(_picked) = _limit THEN
        -- The rest follows these rows, and an index scan from there is faster.
        PERFORM workron.set_scan_cursor(_pool, _priority, _picked[_limit], _cursor.until, _next);
    ELSE
        PERFORM workron.set_scan_cursor(_pool, _cursor.priority, _cursor.job, _cursor.until, _next);
    END IF;
    PERFORM workron.remember_read_pages('ready_' || _pool, 'workron.ready', _page);
    RETURN _picked;
END
$$;
