-- bulk_suspend: suspend a bounded number of a run's queued jobs, and signal its running ones.
-- Queued -> Waiting (suspend)
CREATE OR REPLACE FUNCTION workron.bulk_suspend(_run bigint, _last bigint, _limit integer) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _jobs bigint[];
BEGIN
    PERFORM 1 FROM workron.running WHERE job BETWEEN _run AND _last AND signal IS NULL
    ORDER BY job FOR UPDATE;
    UPDATE workron.running SET signal = 'Suspend' WHERE job BETWEEN _run AND _last AND signal IS NULL;

    WITH queued AS MATERIALIZED (
        SELECT job FROM workron.ready WHERE job BETWEEN _run AND _last
        ORDER BY job LIMIT _limit FOR UPDATE
    ), later AS MATERIALIZED (
        SELECT job FROM workron.deferred WHERE job BETWEEN _run AND _last
        ORDER BY job LIMIT _limit FOR UPDATE
    ), from_ready AS (
        DELETE FROM workron.ready r USING queued q WHERE r.job = q.job
        RETURNING r.job, r.priority, r.attempts, r.failures, r.losses, r.fence, r.alone
    ), from_deferred AS (
        DELETE FROM workron.deferred d USING later q WHERE d.job = q.job
        RETURNING d.job, d.priority, d.attempts, d.failures, d.losses, d.fence, d.alone
    )
    INSERT INTO workron.waiting
        (job, remaining, suspended, wide, priority, attempts, failures, losses, fence, alone)
    SELECT job, 1, true, false, priority, attempts, failures, losses, fence, alone
    FROM (SELECT * FROM from_ready UNION ALL SELECT * FROM from_deferred) taken;

    SELECT array_agg(job) INTO _jobs FROM (
        SELECT w.job FROM workron.waiting w JOIN workron.job j ON j.id = w.job
        WHERE w.job BETWEEN _run AND _last AND j.kind = 'Job' AND NOT w.suspended
        ORDER BY w.job LIMIT _limit FOR UPDATE OF w
    ) blocked;
    UPDATE workron.waiting SET suspended = true, remaining = remaining + 1 WHERE job = ANY (_jobs);
END
$$;
