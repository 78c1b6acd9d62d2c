-- list_attempts: list the ended attempts of a job.

-- name: list_attempts
-- In the order of the attempts.
SELECT * FROM attempt WHERE attempt.job = :job ORDER BY attempt
