-- read_result: what a job wrote as its result.

-- name: read_result
-- No row: it wrote none.
SELECT body FROM result WHERE job = :job
