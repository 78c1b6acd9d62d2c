-- find_job: the id of one job of a run by its name, an array's element by its index as well.

-- name: find_job
-- No row: there is none. An array and its elements have one name; only the array has no index.
SELECT job.id AS job FROM run CROSS JOIN job ON job.id > run.id AND job.id <= run.last
WHERE run.id = :run AND job.name = :name AND job."index" IS :index
LIMIT 1
