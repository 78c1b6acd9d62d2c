-- list_failures: list the jobs of a run that failed first, without groups.
SELECT job.id AS job, job.name, job."index", done.reason, done.message, done.exit_code
FROM run
CROSS JOIN done ON done.job BETWEEN run.id AND run.last
CROSS JOIN job ON job.id = done.job
WHERE run.id = :run AND done.state = 'Failed' AND job.kind = 'Job'
ORDER BY done.finished_at, done.job LIMIT :limit
