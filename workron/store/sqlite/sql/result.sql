-- result: what a job wrote as its result.

-- name: result
-- No row: it wrote none.
SELECT body FROM result WHERE job = :job
