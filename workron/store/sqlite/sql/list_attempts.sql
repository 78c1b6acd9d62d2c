-- list_attempts: the ended attempts of a job.

-- name: list_attempts
-- In the order in which they were made.
SELECT * FROM attempt WHERE attempt.job = :job ORDER BY attempt
