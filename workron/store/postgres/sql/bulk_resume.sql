-- bulk_resume: resume a bounded number of jobs in a range of ids.
-- Waiting -> Queued (ready)
CREATE OR REPLACE FUNCTION workron.bulk_resume(_first bigint, _last bigint, _limit integer) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _jobs bigint[];
BEGIN
    PERFORM 1 FROM workron.running WHERE job BETWEEN _first AND _last AND signal = 'Suspend'
    ORDER BY job FOR UPDATE;
    UPDATE workron.running SET signal = NULL WHERE job BETWEEN _first AND _last AND signal = 'Suspend';

    SELECT array_agg(job) INTO _jobs FROM (
        SELECT job FROM workron.waiting WHERE job BETWEEN _first AND _last AND suspended
        ORDER BY job LIMIT _limit FOR UPDATE
    ) suspended;
    UPDATE workron.waiting SET suspended = false, remaining = remaining - 1 WHERE job = ANY (_jobs);
    PERFORM workron.resolve_waiting(_jobs);
END
$$;
