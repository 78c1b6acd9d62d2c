-- list_attempts: list the ended attempts of a job.
SELECT * FROM attempt WHERE attempt.job = :job ORDER BY attempt
