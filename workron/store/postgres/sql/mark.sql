-- mark: how far this session has walked through a pool's ready jobs, and whether walks begin there now.
-- While anybody's transaction is open, the entries of all jobs that were claimed since stand at the
-- head of the walk. A session that has passed many of them begins behind those for some time.
CREATE OR REPLACE FUNCTION workron.mark(
    _pool integer, OUT priority integer, OUT job bigint, OUT until double precision, OUT holds boolean)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    _now double precision := extract(epoch FROM workron.now());
    _told text[] := string_to_array(current_setting('workron.mark_' || _pool, true), ' ');
BEGIN
    priority := _told[1];
    job := _told[2];
    until := _told[3];
    -- One that is longer than any is made is of before the clock was put back.
    holds := until > _now AND until <= _now + 60;
END
$$;
