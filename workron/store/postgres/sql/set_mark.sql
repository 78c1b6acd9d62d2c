-- set_mark: remember how far this session has walked, until when that is to hold, and when it looks
-- for what has come before it. No job: there is no mark.
CREATE OR REPLACE FUNCTION workron.set_mark(
    _pool integer, _priority integer, _job bigint, _until double precision, _looks_at double precision
) RETURNS void
LANGUAGE sql
AS $$
    SELECT set_config('workron.mark_' || _pool, concat_ws(' ', _priority, _job, _until, _looks_at), false)
$$;
