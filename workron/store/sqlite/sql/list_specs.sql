-- list_specs: list the specs of a run's jobs; the text comes with the first job that has it: with a
-- group or a single job, which have no index. The elements of an array have the spec of their group.
SELECT job.id AS job, job.spec,
       CASE WHEN job."index" IS NULL THEN (SELECT body FROM spec WHERE spec.id = job.spec) END AS body
FROM run CROSS JOIN job ON job.id BETWEEN run.id AND run.last
WHERE run.id = :run
ORDER BY job.id
