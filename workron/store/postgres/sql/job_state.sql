-- job_state: return the state of one job; a waiting group is Running once any of its members has begun.
CREATE OR REPLACE FUNCTION workron.job_state(_job bigint) RETURNS text
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    _state text := (SELECT state FROM workron.job_location WHERE job = _job);
    _last bigint;
BEGIN
    IF _state = 'Waiting' THEN
        _last := (SELECT workron.last_member(id, kind) FROM workron.job WHERE id = _job);
        IF EXISTS (SELECT 1 FROM workron.done WHERE job > _job AND job <= _last)
            OR EXISTS (SELECT 1 FROM workron.running WHERE job > _job AND job <= _last) THEN
            RETURN 'Running';
        END IF;
    END IF;
    RETURN _state;
END
$$;
