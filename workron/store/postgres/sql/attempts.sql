-- attempts: the ended attempts of a root's jobs.
SELECT a.job, a.attempt, a.outcome, a.reason, a.exit_code, a.worker, a.started_at, a.finished_at
FROM workron.root r JOIN workron.attempt a ON a.job BETWEEN r.id AND r.last
WHERE r.id = $1
ORDER BY a.job, a.attempt;
