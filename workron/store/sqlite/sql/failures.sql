-- failures: the commands of a root that failed first.

-- name: failures
-- Groups fail by their members, and are left out.
SELECT job.id AS job, job.name, job."index", done.reason, done.message, done.exit_code
FROM root
CROSS JOIN done ON done.job BETWEEN root.id AND root.last
CROSS JOIN job ON job.id = done.job
WHERE root.id = :root AND done.state = 'Failed' AND job.kind = 'Job'
ORDER BY done.finished_at, done.job LIMIT :limit
