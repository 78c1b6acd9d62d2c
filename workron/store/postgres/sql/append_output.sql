-- append_output: store a chunk of a running job's output, if its claim is valid.
CREATE OR REPLACE FUNCTION workron.append_output(
    _key uuid, _claim uuid, _fence bigint, _chunk integer, _data bytea
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER
AS $$
DECLARE
    _worker workron.worker := workron.lock_session(_key);
    _running workron.running;
    _stored bigint;
    _is_known boolean;
BEGIN
    IF _chunk < 0 OR _chunk > 16383 THEN
        RAISE EXCEPTION 'invalid output chunk number %: the range is 0 to 16383', _chunk
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF octet_length(_data) > 1048576 THEN
        RAISE EXCEPTION 'an output chunk has % bytes; the limit is 1048576', octet_length(_data)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The lock serializes the chunks of an attempt: two at once could exceed the limit together.
    SELECT * INTO _running FROM workron.running
    WHERE claim = _claim AND fence = _fence AND worker = _worker.id FOR NO KEY UPDATE; -- guard: output
    IF NOT FOUND THEN
        RETURN 'stale';
    END IF;
    SELECT coalesce(sum(octet_length(data)), 0), coalesce(bool_or(chunk = _chunk), false)
    INTO _stored, _is_known
    FROM workron.output WHERE job = _running.job AND attempt = _running.attempt;
    IF _is_known THEN
        RETURN 'already';
    ELSIF _stored + octet_length(_data) > 67108864 THEN
        RAISE EXCEPTION 'an output chunk has % bytes and % are stored; the limit of an attempt is 67108864',
            octet_length(_data), _stored USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO workron.output (job, attempt, chunk, data)
    VALUES (_running.job, _running.attempt, _chunk, _data);
    RETURN 'accepted';
END
$$;
