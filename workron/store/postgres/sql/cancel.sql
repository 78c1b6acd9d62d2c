-- cancel: request the cancellation of a run; `bulk_update_step` carries it out. Repeating it
-- succeeds.
WITH asked AS (
    UPDATE workron.run SET cancelled = true
    WHERE id = $1 AND (cancelled OR NOT EXISTS (SELECT 1 FROM workron.done WHERE job = $1))
    RETURNING id
)
INSERT INTO workron.bulk_update (run, operation) SELECT id, 'cancel' FROM asked
ON CONFLICT (run) DO UPDATE SET operation = excluded.operation
RETURNING true AS asked;
