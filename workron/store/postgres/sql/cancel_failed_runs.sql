-- cancel_failed_runs: request the cancellation of runs that `stop_failed_runs` has recorded.
WITH taken AS (
    DELETE FROM workron.failed_run WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM workron.failed_run LIMIT 100 FOR UPDATE SKIP LOCKED
    )) RETURNING run
), asked AS (
    UPDATE workron.run SET cancelled = true, suspended = false
    WHERE id IN (SELECT run FROM taken) AND NOT cancelled
      AND NOT EXISTS (SELECT 1 FROM workron.done WHERE job = id)
    RETURNING id
)
INSERT INTO workron.bulk_update (run, operation) SELECT id, 'cancel' FROM asked
ON CONFLICT (run) DO UPDATE SET operation = excluded.operation
RETURNING run;
