-- session: the worker behind a session key, its row held so that it cannot be reaped meanwhile.
-- KEY SHARE lets its beats go on.
CREATE OR REPLACE FUNCTION workron.session(_key uuid) RETURNS workron.worker
LANGUAGE plpgsql
AS $$
DECLARE
    _worker workron.worker;
BEGIN
    SELECT * INTO _worker FROM workron.worker WHERE session = _key FOR KEY SHARE; -- guard: session
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no worker has this session key: it was taken back, or never registered'
            USING ERRCODE = 'WK001';
    END IF;
    RETURN _worker;
END
$$;
