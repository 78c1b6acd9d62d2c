-- state_of: where one job stands; a group that waits is running once any of its members has run.
-- Members have the ids right behind their group's.
CREATE OR REPLACE FUNCTION workron.state_of(_job bigint) RETURNS text
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    _state text;
    _last bigint;
BEGIN
    SELECT state INTO _state FROM (
        SELECT state FROM workron.done WHERE job = _job
        UNION ALL SELECT 'Running' FROM workron.running WHERE job = _job
        UNION ALL SELECT 'Queued' FROM workron.ready WHERE job = _job
        UNION ALL SELECT 'Waiting' FROM workron.deferred WHERE job = _job
        UNION ALL SELECT 'Waiting' FROM workron.waiting WHERE job = _job
    ) place;
    IF _state = 'Waiting' THEN
        SELECT CASE kind
            WHEN 'Workflow' THEN (SELECT last FROM workron.run WHERE id = _job)
            WHEN 'Array' THEN (SELECT id FROM workron.job WHERE group_id = _job AND group_condition = 'Member'
                               ORDER BY index DESC LIMIT 1)
            END INTO _last
        FROM workron.job WHERE id = _job;
        IF EXISTS (SELECT 1 FROM workron.done WHERE job > _job AND job <= _last)
            OR EXISTS (SELECT 1 FROM workron.running WHERE job > _job AND job <= _last) THEN
            RETURN 'Running';
        END IF;
    END IF;
    RETURN _state;
END
$$;
