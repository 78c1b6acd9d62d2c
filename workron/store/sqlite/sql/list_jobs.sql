-- list_jobs: a run and all its members, whichever place each is in, in order of id.

-- name: list_jobs
-- Each is looked up by its id: nothing is joined that would have to be read whole.
SELECT shown.* FROM run CROSS JOIN shown ON shown.job BETWEEN run.id AND run.last
WHERE run.id = :run
ORDER BY shown.job
