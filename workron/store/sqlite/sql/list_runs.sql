-- list_runs: what was submitted, newest first.

-- name: list_runs
-- Without a namespace, of all.
SELECT * FROM run WHERE :namespace IS NULL OR namespace = :namespace ORDER BY id DESC
