-- list_heartbeats: list all workers with their heartbeat counters.
-- A file has no server that restarts: no commit is ever lost.
SELECT id, 'file' AS server, heartbeats, lease_seconds, name, boot FROM worker ORDER BY id
