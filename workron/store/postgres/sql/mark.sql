-- mark: how far this session has walked through a pool's ready jobs, and whether walks begin there now.
-- While anybody's transaction is open, the entries of all jobs that were claimed since stand at the
-- head of the walk. A session that has passed many of them begins behind those for some time, and looks
-- every two seconds for what has come before it.
CREATE OR REPLACE FUNCTION workron.mark(
    _pool integer, OUT priority integer, OUT job bigint, OUT until double precision,
    OUT looks_at double precision, OUT holds boolean, OUT looks boolean,
    OUT has_just_looked boolean)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    _now double precision := extract(epoch FROM workron.now());
    _told text[] := string_to_array(current_setting('workron.mark_' || _pool, true), ' ');
BEGIN
    priority := _told[1];
    job := _told[2];
    until := _told[3];
    looks_at := _told[4];
    holds := coalesce(until > _now, false);
    -- A time that is further off than any is set to is of before the clock was put back.
    looks := looks_at <= _now OR looks_at > _now + 2;
    has_just_looked := looks_at > _now + 1.9;
END
$$;
