-- lock_session: return the worker of a session key, with a lock that keeps it from being reaped.
-- KEY SHARE does not block its heartbeats.
CREATE OR REPLACE FUNCTION workron.lock_session(_key uuid) RETURNS workron.worker
LANGUAGE plpgsql
AS $$
DECLARE
    _worker workron.worker;
BEGIN
    SELECT * INTO _worker FROM workron.worker WHERE session = _key FOR KEY SHARE; -- guard: session
    IF NOT FOUND THEN
        RAISE EXCEPTION 'unknown session key: the worker was reaped, or never registered'
            USING ERRCODE = 'WK001';
    END IF;
    RETURN _worker;
END
$$;
