-- attempts: the ended attempts of a job.

-- name: attempts
-- In the order in which they were made.
SELECT * FROM attempt WHERE attempt.job = :job ORDER BY attempt
