-- append_output: store a piece of what a running job writes, while its claim stands.
CREATE OR REPLACE FUNCTION workron.append_output(
    _key uuid, _claim uuid, _fence bigint, _chunk integer, _data bytea
) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path = workron, pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    _worker workron.worker := workron.session(_key);
    _held workron.running;
    _stored bigint;
    _is_known boolean;
BEGIN
    IF _chunk < 0 OR _chunk > 16383 THEN
        RAISE EXCEPTION 'a piece of output cannot have the number %; they are counted from 0 to 16383', _chunk
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF octet_length(_data) > 1048576 THEN
        RAISE EXCEPTION 'a piece of output has % bytes; it may have 1048576', octet_length(_data)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Pieces of one attempt come one after the other: two at once would both find room for one.
    SELECT * INTO _held FROM workron.running
    WHERE claim = _claim AND fence = _fence AND worker = _worker.id FOR NO KEY UPDATE; -- guard: output
    IF NOT FOUND THEN
        RETURN 'stale';
    END IF;
    SELECT coalesce(sum(octet_length(data)), 0), coalesce(bool_or(chunk = _chunk), false)
    INTO _stored, _is_known
    FROM workron.output WHERE job = _held.job AND attempt = _held.attempt;
    IF _is_known THEN
        RETURN 'already';
    ELSIF _stored + octet_length(_data) > 67108864 THEN
        RAISE EXCEPTION 'a piece of output has % bytes and % are stored; an attempt may have 67108864',
            octet_length(_data), _stored USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO workron.output (job, attempt, chunk, data)
    VALUES (_held.job, _held.attempt, _chunk, _data);
    RETURN 'accepted';
END
$$;
