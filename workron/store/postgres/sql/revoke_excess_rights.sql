-- revoke_excess_rights: revoke what a role may do besides a worker's functions, and list what the
-- caller may not revoke.
CREATE OR REPLACE FUNCTION workron.revoke_excess_rights(_role text) RETURNS SETOF text
LANGUAGE plpgsql
AS $$
DECLARE
    _statement text;
BEGIN
    FOR _statement IN SELECT * FROM workron.list_excess_rights(_role) LOOP
        BEGIN
            EXECUTE _statement;
        EXCEPTION WHEN insufficient_privilege THEN
            NULL; -- Often it is only a warning. The remaining rights are listed below.
        END;
    END LOOP;
    RETURN QUERY SELECT * FROM workron.list_excess_rights(_role);
END
$$;
