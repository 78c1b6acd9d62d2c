-- pull_mark: have walks of this session through a pool begin no later than at this job.
-- What is of a higher priority than the mark stands before all that is behind it: then there is none.
CREATE OR REPLACE FUNCTION workron.pull_mark(_pool integer, _priority integer, _job bigint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _mark record := workron.mark(_pool);
BEGIN
    IF _mark.priority < _priority THEN
        PERFORM workron.set_mark(_pool, _mark.priority, _mark.job, 0);
    ELSIF _mark.priority = _priority AND _mark.job >= _job THEN
        PERFORM workron.set_mark(_pool, _mark.priority, _job - 1, _mark.until);
    END IF;
END
$$;
