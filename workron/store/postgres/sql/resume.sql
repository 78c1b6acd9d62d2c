-- resume: request the end of a suspension; `bulk_update_step` carries it out.
WITH asked AS (
    UPDATE workron.run SET suspended = false
    WHERE id = $1 AND NOT cancelled AND NOT EXISTS (SELECT 1 FROM workron.done WHERE job = $1)
    RETURNING id
)
INSERT INTO workron.bulk_update AS s (run, operation) SELECT id, 'resume' FROM asked
ON CONFLICT (run) DO UPDATE SET operation = excluded.operation WHERE s.operation IS DISTINCT FROM 'cancel'
RETURNING true AS asked;
