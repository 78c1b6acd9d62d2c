-- list_runs: list runs, newest first; a null namespace means all.
SELECT *, id AS run, last AS last_job, cancel_requested AS is_cancelled FROM run
WHERE :namespace IS NULL OR namespace = :namespace ORDER BY id DESC
