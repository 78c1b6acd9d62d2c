-- attempts: the ended attempts of a root's jobs.

-- name: attempts
-- One row for each claim that was ever made and is over.
SELECT attempt.* FROM root CROSS JOIN attempt ON attempt.job BETWEEN root.id AND root.last
WHERE root.id = :root ORDER BY attempt.job, attempt.attempt
