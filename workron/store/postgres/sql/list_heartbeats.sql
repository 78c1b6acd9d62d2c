-- list_heartbeats: every worker, its counter in which run of the server, and how long its claims outlive its last beat.
SELECT w.id AS worker, workron.server() AS server, w.beats, w.lease_seconds, w.name, w.boot
FROM workron.worker w
ORDER BY w.id;
