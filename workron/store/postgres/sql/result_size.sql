-- result_size: how many bytes `result_text` has for a job; null when there is none. It stops counting
-- where that is more than a job is given. The elements of an array have the ids right behind its own.
CREATE OR REPLACE FUNCTION workron.result_size(_job bigint) RETURNS bigint
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    _size bigint;
    _last bigint;
    _total bigint;
BEGIN
    SELECT octet_length(body) INTO _size FROM workron.result WHERE job = _job;
    IF FOUND THEN
        RETURN _size;
    END IF;
    SELECT id INTO _last FROM workron.job WHERE member_of = _job AND bearing = 'Member'
    ORDER BY index DESC LIMIT 1;
    -- As if none had one: each 'null' with what parts it from the next.
    _total := 6 * (_last - _job);
    FOR _size IN SELECT octet_length(body) FROM workron.result WHERE job > _job AND job <= _last LOOP
        _total := _total - 4 + _size;
        EXIT WHEN _total > 1048576;
    END LOOP;
    RETURN CASE WHEN FOUND THEN _total END;
END
$$;
