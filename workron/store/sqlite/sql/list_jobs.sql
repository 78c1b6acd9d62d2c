-- list_jobs: list all jobs of a run and their current states, in order of id.
SELECT job_view.* FROM run CROSS JOIN job_view ON job_view.job BETWEEN run.id AND run.last
WHERE run.id = :run
ORDER BY job_view.job
