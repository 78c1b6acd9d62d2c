-- state_of: where one job stands.
CREATE OR REPLACE FUNCTION workron.state_of(_job bigint) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT state FROM workron.done WHERE job = _job
    UNION ALL SELECT 'Running' FROM workron.running WHERE job = _job
    UNION ALL SELECT 'Queued' FROM workron.ready WHERE job = _job
    UNION ALL SELECT 'Waiting' FROM workron.deferred WHERE job = _job
    UNION ALL SELECT 'Waiting' FROM workron.waiting WHERE job = _job
$$;
