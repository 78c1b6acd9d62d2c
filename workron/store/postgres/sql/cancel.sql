-- cancel: ask for the end of a run; `sweep_step` then carries it out. Asked again, it is granted again.
WITH asked AS (
    UPDATE workron.run SET cancelled = true
    WHERE id = $1 AND (cancelled OR NOT EXISTS (SELECT 1 FROM workron.done WHERE job = $1))
    RETURNING id
)
INSERT INTO workron.sweep (run, verb) SELECT id, 'cancel' FROM asked
ON CONFLICT (run) DO UPDATE SET verb = excluded.verb
RETURNING true AS asked;
