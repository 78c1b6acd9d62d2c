-- cancel: request the cancellation of a run; `bulk_update_step` carries it out. Repeating it
-- succeeds. Jobs of `finally` are cancelled by force only; a suspension does not keep them.
WITH asked AS (
    UPDATE workron.run SET cancelled = true, cancel_requested = true, suspended = false, forced = forced OR $2
    WHERE id = $1 AND (cancelled OR NOT EXISTS (SELECT 1 FROM workron.done WHERE job = $1))
    RETURNING id
)
INSERT INTO workron.bulk_update (run, operation) SELECT id, 'cancel' FROM asked
ON CONFLICT (run) DO UPDATE SET operation = excluded.operation
RETURNING true AS asked;
