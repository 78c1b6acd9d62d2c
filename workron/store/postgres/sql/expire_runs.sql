-- expire_runs: request the cancellation of runs whose deadline has passed; they fail.
-- A run whose tasks have ended keeps its verdict: its jobs of `finally` have as long as they need. So
-- does a run that was cancelled before.
CREATE OR REPLACE FUNCTION workron.expire_runs(_runs bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
BEGIN
    PERFORM 1 FROM workron.run WHERE id = ANY (_runs) ORDER BY id FOR UPDATE;
    WITH asked AS (
        UPDATE workron.run SET expired = true, cancelled = true, suspended = false
        WHERE id = ANY (_runs) AND NOT cancelled
          -- The job after the run is the group of its tasks, in a workflow with `finally`.
          AND NOT EXISTS (SELECT 1 FROM workron.done
                          WHERE job = CASE WHEN finally_from IS NULL THEN id ELSE id + 1 END)
        RETURNING id
    )
    INSERT INTO workron.bulk_update (run, operation) SELECT id, 'cancel' FROM asked
    ON CONFLICT (run) DO UPDATE SET operation = excluded.operation;
END
$$;
