-- expire: end jobs whose deadline has passed, and signal those that run.
-- Waiting -> Failed (expire)
-- Queued -> Failed (expire)
-- A job that moves at the same time keeps its deadline, and the next step finds it. A workflow whose
-- deadline passes is cancelled, unless its tasks have ended; `bulk_update_step` carries that out.
CREATE OR REPLACE FUNCTION workron.expire(_limit integer) RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    _now timestamptz := workron.now();
    _due bigint[];
    _runs bigint[];
    _moved integer;
BEGIN
    SELECT array_agg(job ORDER BY job) INTO _due FROM (
        SELECT job FROM workron.deadline WHERE due <= _now
        ORDER BY due LIMIT _limit FOR UPDATE SKIP LOCKED
    ) passed;
    IF _due IS NULL THEN
        RETURN 0;
    END IF;
    SELECT array_agg(id) INTO _runs FROM workron.job WHERE id = ANY (_due) AND kind = 'Workflow';
    IF _runs IS NOT NULL THEN
        -- In a transaction of their own, which locks no jobs.
        PERFORM workron.expire_runs(_runs);
        DELETE FROM workron.deadline WHERE job = ANY (_runs);
        RETURN cardinality(_runs);
    END IF;
    PERFORM 1 FROM workron.running WHERE job = ANY (_due) ORDER BY job FOR UPDATE;
    UPDATE workron.running SET signal = 'Expire'
    WHERE job = ANY (_due) AND signal IS DISTINCT FROM 'Cancel';

    WITH taken AS (
        SELECT * FROM workron.remove_from_queues(_due)
    ), ended AS (
        INSERT INTO workron.done (job, state, reason, finished_at, attempts, failures, losses)
        SELECT job, 'Failed', 'DeadlineExceeded', _now, attempts, failures, losses FROM taken
        RETURNING job
    )
    INSERT INTO workron.unpropagated (job) SELECT job FROM ended;

    DELETE FROM workron.deadline x WHERE x.job = ANY (_due) AND (
        EXISTS (SELECT 1 FROM workron.done d WHERE d.job = x.job)
        OR EXISTS (SELECT 1 FROM workron.running r WHERE r.job = x.job AND r.signal IS NOT NULL
                   AND r.signal <> 'Suspend'));
    GET DIAGNOSTICS _moved = ROW_COUNT;
    RETURN _moved;
END
$$;
