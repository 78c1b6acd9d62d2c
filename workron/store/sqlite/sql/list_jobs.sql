-- list_jobs: list all jobs of a run and their current states, in order of id, without the group of the
-- tasks of a workflow that has `finally`.
SELECT job_view.* FROM run CROSS JOIN job_view ON job_view.job BETWEEN run.id AND run.last
WHERE run.id = :run AND job_view.kind <> 'Tasks'
ORDER BY job_view.job
