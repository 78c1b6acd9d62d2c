-- get_jobs: some jobs as they stand, in the order in which they are asked for.

-- name: get_jobs
-- What is not there is left out.
SELECT shown.* FROM json_each(:jobs) AS wanted CROSS JOIN shown ON shown.job = wanted.value
ORDER BY wanted.key
