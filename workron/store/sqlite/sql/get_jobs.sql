-- get_jobs: get some jobs and their current states, in the given order.
SELECT job_view.* FROM json_each(:jobs) AS wanted CROSS JOIN job_view ON job_view.job = wanted.value
ORDER BY wanted.key
