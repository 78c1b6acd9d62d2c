-- cancel: ask for the end of a root; `sweep_step` then carries it out. Asked again, it is granted again.
WITH asked AS (
    UPDATE workron.root SET cancelled = true
    WHERE id = $1 AND (cancelled OR NOT EXISTS (SELECT 1 FROM workron.done WHERE job = $1))
    RETURNING id
)
INSERT INTO workron.sweep (root, verb) SELECT id, 'cancel' FROM asked
ON CONFLICT (root) DO UPDATE SET verb = excluded.verb
RETURNING true AS asked;
