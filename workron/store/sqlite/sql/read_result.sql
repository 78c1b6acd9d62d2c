-- read_result: read a job's result.

-- name: read_result
-- No row: no result.
SELECT body FROM result WHERE job = :job
