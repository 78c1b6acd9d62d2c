-- list_runs: list runs, newest first; a null namespace means all.

-- name: list_runs
-- A null namespace means all.
SELECT * FROM run WHERE :namespace IS NULL OR namespace = :namespace ORDER BY id DESC
