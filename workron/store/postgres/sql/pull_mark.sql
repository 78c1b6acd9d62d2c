-- pull_mark: have the next walk of this session through a pool find this job, though it stands before
-- the mark.
-- The ids of a workflow are consecutive: a near one is not far in the index either. For one that is
-- further back, or of a higher priority, the walk looks among what is new.
CREATE OR REPLACE FUNCTION workron.pull_mark(_pool integer, _priority integer, _job bigint) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _mark record := workron.mark(_pool);
BEGIN
    IF _mark.priority = _priority AND _job <= _mark.job AND _mark.job < _job + 10000 THEN
        PERFORM workron.set_mark(_pool, _priority, _job - 1, _mark.until, _mark.looks_at);
    ELSIF (_mark.priority, -_mark.job) < (_priority, -_job + 1) THEN
        PERFORM workron.set_mark(_pool, _mark.priority, _mark.job, _mark.until, 0);
    END IF;
END
$$;
