-- list_attempts: list the ended attempts of a job.
SELECT a.job, a.attempt, a.outcome, a.reason, a.exit_code, a.worker, a.started_at, a.finished_at
FROM workron.attempt a
WHERE a.job = $1
ORDER BY a.attempt;
