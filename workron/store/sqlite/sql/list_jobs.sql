-- list_jobs: a run and all its members, whichever place each is in, in order of id.

-- name: list_jobs
-- Each is looked up by its id: nothing is joined that would have to be read whole.
SELECT job_view.* FROM run CROSS JOIN job_view ON job_view.job BETWEEN run.id AND run.last
WHERE run.id = :run
ORDER BY job_view.job
