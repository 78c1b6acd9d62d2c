-- count_states: count a run's jobs by state, without groups. It counts all jobs of each table,
-- minus the few groups: cheaper than looking up the kind of every job.
WITH whole AS (
    SELECT id AS first, last FROM run WHERE id = :run
), grouped AS (
    SELECT job.id FROM whole CROSS JOIN job INDEXED BY job_group
    WHERE job.kind <> 'Job' AND job.id BETWEEN whole.first AND whole.last
)
SELECT state, sum(jobs) AS count FROM (
    SELECT 'Waiting' AS state, count(*) AS jobs
    FROM whole CROSS JOIN waiting ON waiting.job BETWEEN first AND last
    UNION ALL
    SELECT 'Waiting', count(*) FROM whole CROSS JOIN deferred ON deferred.job BETWEEN first AND last
    UNION ALL
    SELECT 'Queued', count(*) FROM whole CROSS JOIN ready ON ready.job BETWEEN first AND last
    UNION ALL
    SELECT 'Running', count(*) FROM whole CROSS JOIN running ON running.job BETWEEN first AND last
    UNION ALL
    SELECT done.state, count(*) FROM whole CROSS JOIN done ON done.job BETWEEN first AND last
    GROUP BY done.state
    UNION ALL
    SELECT coalesce(done.state, 'Waiting'), -count(*)
    FROM grouped LEFT JOIN done ON done.job = grouped.id
    GROUP BY coalesce(done.state, 'Waiting')
)
GROUP BY state HAVING sum(jobs) > 0
