-- list_heartbeats: list all workers with their heartbeat counters.
SELECT w.id AS worker, workron.server_start() AS server, w.heartbeats, w.lease_seconds, w.name, w.boot
FROM workron.worker w
ORDER BY w.id;
