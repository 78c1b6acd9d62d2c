-- grant_worker: allow a role to run jobs, and nothing else.
CREATE OR REPLACE FUNCTION workron.grant_worker(_role text) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _left text;
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA workron TO %I', _role);
    EXECUTE format(
        'GRANT EXECUTE ON FUNCTION workron.register(text, text, uuid, integer), workron.heartbeat(uuid), '
        'workron.claim(uuid, uuid[]), '
        'workron.complete(uuid, bigint[], uuid[], bigint[], text[], text[], text[], integer[], '
        'double precision[], text[], bytea[], uuid[]), '
        'workron.release(uuid, uuid[], bigint[], text), '
        'workron.append_output(uuid, uuid, bigint, integer, bytea), '
        'workron.deregister(uuid) TO %I', _role);
    SELECT string_agg(o || ';', ' ') INTO _left FROM workron.revoke_excess_rights(_role) o;
    IF _left IS NOT NULL THEN
        RAISE EXCEPTION 'nothing was granted: % could do more than run jobs, and % may not revoke that',
            _role, current_user
            USING ERRCODE = 'insufficient_privilege',
                  HINT = format('As a superuser or the owner of these objects, run in this database: '
                                '%s Then grant again.', _left);
    END IF;
END
$$;
