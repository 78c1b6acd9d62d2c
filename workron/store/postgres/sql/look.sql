-- look: every worker, its counter, and how long its claims outlive its last beat.
SELECT w.id AS worker, w.beats, p.lease_seconds, w.name, w.boot
FROM workron.worker w JOIN workron.pool p ON p.id = w.pool
ORDER BY w.id;
