-- look: every worker, its counter in which run of the server, and how long its claims outlive its last beat.
SELECT w.id AS worker, workron.server() AS server, w.beats, p.lease_seconds, w.name, w.boot
FROM workron.worker w JOIN workron.pool p ON p.id = w.pool
ORDER BY w.id;
