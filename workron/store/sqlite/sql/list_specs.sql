-- list_specs: list the specs of a run's jobs; the text comes with the first job that has it.
SELECT job.id AS job, job.spec,
       CASE WHEN row_number() OVER (PARTITION BY job.spec ORDER BY job.id) = 1 THEN spec.body END AS body
FROM run
CROSS JOIN job ON job.id BETWEEN run.id AND run.last
CROSS JOIN spec ON spec.id = job.spec
WHERE run.id = :run
ORDER BY job.id
