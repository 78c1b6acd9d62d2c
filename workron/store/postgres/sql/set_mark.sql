-- set_mark: remember how far this session has walked, and that it need not look before that until then.
CREATE OR REPLACE FUNCTION workron.set_mark(
    _pool integer, _priority integer, _job bigint, _until double precision
) RETURNS void
LANGUAGE sql
AS $$ SELECT set_config('workron.mark_' || _pool, concat_ws(' ', _priority, _job, _until), false) $$;
