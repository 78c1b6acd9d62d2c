-- bulk_prioritize: change the priority of a bounded number of a run's jobs.
CREATE OR REPLACE FUNCTION workron.bulk_prioritize(
    _run bigint, _last bigint, _priority integer, _limit integer
) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _jobs bigint[];
BEGIN
    PERFORM 1 FROM workron.running
    WHERE job BETWEEN _run AND _last AND priority <> _priority
    ORDER BY job FOR UPDATE;
    UPDATE workron.running SET priority = _priority
    WHERE job BETWEEN _run AND _last AND priority <> _priority;

    SELECT array_agg(job) INTO _jobs FROM (
        SELECT job FROM workron.ready
        WHERE job BETWEEN _run AND _last AND priority <> _priority
        ORDER BY job LIMIT _limit FOR UPDATE
    ) queued;
    -- They may now be before the scan start.
    UPDATE workron.ready SET priority = _priority, inserted_by = DEFAULT WHERE job = ANY (_jobs);

    SELECT array_agg(job) INTO _jobs FROM (
        SELECT job FROM workron.deferred
        WHERE job BETWEEN _run AND _last AND priority <> _priority
        ORDER BY job LIMIT _limit FOR UPDATE
    ) later;
    UPDATE workron.deferred SET priority = _priority WHERE job = ANY (_jobs);

    SELECT array_agg(job) INTO _jobs FROM (
        SELECT job FROM workron.waiting
        WHERE job BETWEEN _run AND _last AND priority <> _priority
        ORDER BY job LIMIT _limit FOR UPDATE
    ) blocked;
    UPDATE workron.waiting SET priority = _priority WHERE job = ANY (_jobs);
END
$$;
