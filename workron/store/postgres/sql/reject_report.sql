-- reject_report: raise an error about a part of a report.
CREATE OR REPLACE FUNCTION workron.reject_report(_problem text) RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
    RAISE EXCEPTION 'invalid report: %', _problem
        USING ERRCODE = 'invalid_parameter_value';
END
$$;
