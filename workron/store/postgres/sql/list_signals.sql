-- list_signals: list signals to running jobs of a run that have not taken effect yet.
SELECT q.job, q.signal
FROM workron.run r JOIN workron.running q ON q.job BETWEEN r.id AND r.last
WHERE r.id = $1 AND q.signal IS NOT NULL
ORDER BY q.job;
