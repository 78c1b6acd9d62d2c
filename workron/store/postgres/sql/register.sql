-- register: register a worker in the pool of its token, and return its session key.
CREATE OR REPLACE FUNCTION workron.register(_token text, _name text, _boot uuid, _slots integer)
RETURNS TABLE (worker bigint, session uuid, lease_seconds double precision, namespace text, pool text)
LANGUAGE plpgsql SECURITY DEFINER
AS $$
#variable_conflict use_column
DECLARE
    _pool integer;
    _lease double precision;
BEGIN
    SELECT p.id, p.lease_seconds INTO _pool, _lease FROM workron.token t JOIN workron.pool p ON p.id = t.pool
    WHERE t.hash = sha256(convert_to(_token, 'UTF8')) AND t.expires > workron.now()
      AND (p.role IS NULL OR p.role = session_user);
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the token is unknown or has expired; create a new one'
            USING ERRCODE = 'WK002';
    END IF;
    INSERT INTO workron.worker (session, pool, name, boot, slots, lease_seconds, registered_at)
    VALUES (gen_random_uuid(), _pool, _name, _boot, _slots, _lease, workron.now())
    ON CONFLICT (pool, name, boot) DO NOTHING;
    RETURN QUERY SELECT w.id, w.session, w.lease_seconds, p.namespace, p.name
        FROM workron.worker w JOIN workron.pool p ON p.id = w.pool
        WHERE w.pool = _pool AND w.name = _name AND w.boot = _boot;
END
$$;
