-- list_signals: what was asked of the running jobs of a run, and is not in effect yet.
SELECT q.job, q.mark
FROM workron.run r JOIN workron.running q ON q.job BETWEEN r.id AND r.last
WHERE r.id = $1 AND q.mark IS NOT NULL
ORDER BY q.job;
