-- grant_worker: let a role run jobs, and do nothing else.
CREATE OR REPLACE FUNCTION workron.grant_worker(_role text) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    EXECUTE format('GRANT USAGE ON SCHEMA workron TO %I', _role);
    EXECUTE format(
        'GRANT EXECUTE ON FUNCTION workron.register(text, text, uuid, integer), workron.beat(uuid), '
        'workron.claim(uuid, uuid[]), workron.complete(uuid, jsonb, bytea[], uuid[]), '
        'workron.release(uuid, uuid[], bigint[]), '
        'workron.append_output(uuid, uuid, bigint, integer, bytea), '
        'workron.leave(uuid) TO %I', _role);
    -- Everybody may make temporary tables and large objects by default: room to fill a disk from.
    EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    REVOKE EXECUTE ON FUNCTION pg_catalog.lo_create(oid), pg_catalog.lo_creat(integer),
        pg_catalog.lo_from_bytea(oid, bytea) FROM PUBLIC;
END
$$;
