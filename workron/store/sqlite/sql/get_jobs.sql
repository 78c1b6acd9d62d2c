-- get_jobs: some jobs as they stand, in the order in which they are asked for.

-- name: get_jobs
-- What is not there is left out.
SELECT job_view.* FROM json_each(:jobs) AS wanted CROSS JOIN job_view ON job_view.job = wanted.value
ORDER BY wanted.key
