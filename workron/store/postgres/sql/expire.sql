-- expire: end jobs whose deadline has passed; mark those that run.
-- Waiting -> Failed (expire)
-- Queued -> Failed (expire)
-- A job that moves while it is looked for keeps its deadline row, and is found by the next step.
CREATE OR REPLACE FUNCTION workron.expire(_limit integer) RETURNS integer
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    _now timestamptz := workron.now();
    _due bigint[];
    _moved integer;
BEGIN
    SELECT array_agg(job ORDER BY job) INTO _due FROM (
        SELECT job FROM workron.deadline WHERE due <= _now
        ORDER BY due LIMIT _limit FOR UPDATE SKIP LOCKED
    ) passed;
    IF _due IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM 1 FROM workron.running WHERE job = ANY (_due) ORDER BY job FOR UPDATE;
    UPDATE workron.running SET mark = 'Expire'
    WHERE job = ANY (_due) AND mark IS DISTINCT FROM 'Cancel';

    WITH taken AS (
        SELECT * FROM workron.take_out(_due)
    ), ended AS (
        INSERT INTO workron.done (job, state, reason, finished_at, attempts, failures, losses)
        SELECT job, 'Failed', 'DeadlineExceeded', _now, attempts, failures, losses FROM taken
        RETURNING job
    )
    INSERT INTO workron.unsettled (job) SELECT job FROM ended;

    DELETE FROM workron.deadline x WHERE x.job = ANY (_due) AND (
        EXISTS (SELECT 1 FROM workron.done d WHERE d.job = x.job)
        OR EXISTS (SELECT 1 FROM workron.running r WHERE r.job = x.job AND r.mark IS NOT NULL
                   AND r.mark <> 'Hold'));
    GET DIAGNOSTICS _moved = ROW_COUNT;
    RETURN _moved;
END
$$;
