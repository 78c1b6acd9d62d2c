-- find_job: find a job of a run by name, and an element of an array also by index. An array and its
-- elements have the same name; only the array has no index.
SELECT job.id AS job FROM run CROSS JOIN job ON job.id > run.id AND job.id <= run.last
WHERE run.id = :run AND job.kind <> 'Tasks' AND job.name = :name AND job."index" IS :index
LIMIT 1
