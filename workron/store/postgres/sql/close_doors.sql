-- close_doors: end what a role may do besides a worker's verbs; what is not ours to end is answered.
CREATE OR REPLACE FUNCTION workron.close_doors(_role text) RETURNS SETOF text
LANGUAGE plpgsql
AS $$
DECLARE
    _statement text;
BEGIN
    FOR _statement IN SELECT * FROM workron.open_doors(_role) LOOP
        BEGIN
            EXECUTE _statement;
        EXCEPTION WHEN insufficient_privilege THEN
            NULL; -- Mostly it is a mere warning; either way the door is looked at again.
        END;
    END LOOP;
    RETURN QUERY SELECT * FROM workron.open_doors(_role);
END
$$;
