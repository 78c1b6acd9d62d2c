-- marks: what was asked of the running jobs of a root, and is not in effect yet.
SELECT q.job, q.mark
FROM workron.root r JOIN workron.running q ON q.job BETWEEN r.id AND r.last
WHERE r.id = $1 AND q.mark IS NOT NULL
ORDER BY q.job;
