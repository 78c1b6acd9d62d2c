-- jobs: a root and all its members, whichever place each is in, in order of id.

-- name: jobs
-- A job that was tried before began with its first attempt, a group with its first member. Asked of
-- each by its indexes: a join with a set of beginnings is planned as a scan for every job by some
-- versions of SQLite.
SELECT job.id AS job, job.root, job.kind, job.name, job."index", job.member_of, standing.state,
       CASE WHEN standing.state NOT IN ('Queued', 'Running') THEN standing.reason END AS reason,
       standing.message, standing.priority, pool.name AS pool, standing.attempts, standing.failures,
       standing.losses, standing.exit_code, standing.worker, standing.due,
       CASE job.kind
           WHEN 'Job' THEN coalesce(
               (SELECT started_at FROM attempt WHERE attempt.job = job.id ORDER BY attempt LIMIT 1),
               standing.claimed_at)
           WHEN 'Array' THEN (
               SELECT min(coalesce(
                   (SELECT started_at FROM attempt WHERE attempt.job = element.id
                    ORDER BY attempt LIMIT 1),
                   (SELECT claimed_at FROM running WHERE running.job = element.id)))
               FROM job AS element
               WHERE element.member_of = job.id AND element.bearing = 'Member')
           ELSE (
               SELECT min(began) FROM (
                   SELECT started_at AS began FROM attempt
                   WHERE attempt.job BETWEEN root.id AND root.last
                   UNION ALL
                   SELECT claimed_at FROM running WHERE running.job BETWEEN root.id AND root.last))
       END AS started_at,
       standing.finished_at
FROM root
CROSS JOIN job ON job.id BETWEEN root.id AND root.last
CROSS JOIN standing ON standing.job = job.id
CROSS JOIN pool ON pool.id = job.pool
WHERE root.id = :root
ORDER BY job.id
