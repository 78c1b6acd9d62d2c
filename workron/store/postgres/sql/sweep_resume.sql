-- sweep_resume: take the hold off a bounded number of a run's jobs.
-- Waiting -> Queued (ready)
CREATE OR REPLACE FUNCTION workron.sweep_resume(_run bigint, _last bigint, _limit integer) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _jobs bigint[];
BEGIN
    PERFORM 1 FROM workron.running WHERE job BETWEEN _run AND _last AND mark = 'Hold'
    ORDER BY job FOR UPDATE;
    UPDATE workron.running SET mark = NULL WHERE job BETWEEN _run AND _last AND mark = 'Hold';

    SELECT array_agg(job) INTO _jobs FROM (
        SELECT job FROM workron.waiting WHERE job BETWEEN _run AND _last AND held
        ORDER BY job LIMIT _limit FOR UPDATE
    ) held;
    UPDATE workron.waiting SET held = false, remaining = remaining - 1 WHERE job = ANY (_jobs);
    PERFORM workron.decide(_jobs);
END
$$;
