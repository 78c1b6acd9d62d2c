-- refuse_ends: raise when a report has an outcome that no report can have, or more than is kept.
CREATE OR REPLACE FUNCTION workron.refuse_ends(_ends jsonb, _outputs bytea[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _wrong text;
BEGIN
    SELECT CASE
        WHEN t.outcome IS NULL OR t.outcome NOT IN ('Succeeded', 'Failed', 'Retry')
            THEN format('the outcome of a report is Succeeded, Failed or Retry, not %s',
                        coalesce(left(t.outcome, 40), 'null'))
        WHEN octet_length(t.result) > 65536
            THEN format('the result has %s bytes; at most 65536 are kept', octet_length(t.result))
        WHEN octet_length(t.output) > 1048576
            THEN format('the output has %s bytes; at most 1048576 are kept', octet_length(t.output))
        END AS wrong
    INTO _wrong
    FROM ROWS FROM (jsonb_to_recordset(_ends) AS (outcome text, result text), unnest(_outputs))
        AS t(outcome, result, output)
    ORDER BY wrong LIMIT 1;
    IF _wrong IS NOT NULL THEN
        RAISE EXCEPTION '%', _wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
END
$$;
