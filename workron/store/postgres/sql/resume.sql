-- resume: undo a suspension; `sweep_step` then carries it out.
WITH asked AS (
    UPDATE workron.run SET held = false
    WHERE id = $1 AND NOT cancelled AND NOT EXISTS (SELECT 1 FROM workron.done WHERE job = $1)
    RETURNING id
)
INSERT INTO workron.sweep AS s (run, verb) SELECT id, 'resume' FROM asked
ON CONFLICT (run) DO UPDATE SET verb = excluded.verb WHERE s.verb IS DISTINCT FROM 'cancel'
RETURNING true AS asked;
