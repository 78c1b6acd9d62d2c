-- jobs: a root and all its members, whichever place each is in, in order of id.

-- name: jobs
-- A group began with its first member; a job that was tried before, with its first attempt.
WITH begun AS (
    SELECT job.id AS job, job.member_of,
           coalesce((SELECT attempt.started_at FROM attempt WHERE attempt.job = job.id
                     ORDER BY attempt.attempt LIMIT 1),
                    (SELECT running.claimed_at FROM running WHERE running.job = job.id)) AS began
    FROM root CROSS JOIN job ON job.id BETWEEN root.id AND root.last
    WHERE root.id = :root AND job.kind = 'Job'
), beginning AS (
    SELECT job, min(began) AS began
    FROM (SELECT job, began FROM begun
          UNION ALL SELECT member_of, began FROM begun WHERE member_of IS NOT NULL
          UNION ALL SELECT :root, began FROM begun)
    GROUP BY job
)
SELECT job.id AS job, job.root, job.kind, job.name, job."index", job.member_of, standing.state,
       CASE WHEN standing.state NOT IN ('Queued', 'Running') THEN standing.reason END AS reason,
       standing.message, standing.priority, pool.name AS pool, standing.attempts, standing.failures,
       standing.losses, standing.exit_code, standing.worker, standing.due,
       beginning.began AS started_at, standing.finished_at
FROM root
CROSS JOIN job ON job.id BETWEEN root.id AND root.last
CROSS JOIN standing ON standing.job = job.id
CROSS JOIN pool ON pool.id = job.pool
LEFT JOIN beginning ON beginning.job = job.id
WHERE root.id = :root
ORDER BY job.id
