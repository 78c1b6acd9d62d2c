-- refuse: raise because of a part of a report; called only where one is wrong.
CREATE OR REPLACE FUNCTION workron.refuse(_part text, _right text) RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'the % of a report is not what it may be: %', _part, _right
        USING ERRCODE = 'invalid_parameter_value';
END
$$;
