-- result_size: return the number of bytes of `result_text`, or null without a result; it stops
-- counting above the limit of inputs.
-- The elements of an array have the ids that follow its own.
CREATE OR REPLACE FUNCTION workron.result_size(_job bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    _size bigint;
    _last bigint;
    _total bigint := 0;
    _count integer := 0;
BEGIN
    SELECT octet_length(body) INTO _size FROM workron.result WHERE job = _job;
    IF FOUND THEN
        RETURN _size;
    END IF;
    SELECT id INTO _last FROM workron.job WHERE group_id = _job AND group_condition = 'Member'
    ORDER BY index DESC LIMIT 1;
    FOR _size IN SELECT octet_length(body) FROM workron.result WHERE job > _job AND job <= _last LOOP
        _total := _total + _size + 2;
        _count := _count + 1;
        EXIT WHEN _total > 1048576;
    END LOOP;
    -- Each element without a result is a 'null' and a separator.
    RETURN CASE WHEN _count > 0 THEN _total + 6 * (_last - _job - _count) END;
END
$$;
