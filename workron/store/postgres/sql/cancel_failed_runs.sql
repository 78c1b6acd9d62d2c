-- cancel_failed_runs: request the cancellation of runs that `record_failed_runs` has recorded.
CREATE OR REPLACE FUNCTION workron.cancel_failed_runs(_limit integer) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _runs bigint[];
BEGIN
    WITH taken AS (
        DELETE FROM workron.failed_run WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM workron.failed_run LIMIT _limit FOR UPDATE SKIP LOCKED
        )) RETURNING run
    )
    SELECT array_agg(run) INTO _runs FROM taken;
    -- Statements that are not reached need no plan.
    IF _runs IS NULL THEN
        RETURN;
    END IF;
    PERFORM 1 FROM workron.run WHERE id = ANY (_runs) ORDER BY id FOR UPDATE;
    WITH asked AS (
        UPDATE workron.run SET cancelled = true, suspended = false
        WHERE id = ANY (_runs) AND NOT cancelled
          AND NOT EXISTS (SELECT 1 FROM workron.done WHERE job = id)
        RETURNING id
    )
    INSERT INTO workron.bulk_update (run, operation) SELECT id, 'cancel' FROM asked
    ON CONFLICT (run) DO UPDATE SET operation = excluded.operation;
END
$$;
