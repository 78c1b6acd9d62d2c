-- audit: count waiting jobs after an id although everything that they wait for has ended, and
-- return the id to continue after. An end that was not propagated yet is not an error.
WITH seen AS MATERIALIZED (
    SELECT job, suspended, awaits_proof FROM waiting WHERE job > :after ORDER BY job LIMIT :limit
)
SELECT count(*) AS missed,
       (SELECT CASE WHEN count(*) = :limit THEN max(job) ELSE 0 END FROM seen) AS last
FROM seen AS oldest
CROSS JOIN job ON job.id = oldest.job
WHERE NOT oldest.suspended AND NOT oldest.awaits_proof
  AND NOT EXISTS (SELECT 1 FROM external_dependency WHERE external_dependency.downstream = oldest.job)
  AND NOT EXISTS (
      SELECT 1 FROM edge
      WHERE edge.downstream = oldest.job
        AND (NOT EXISTS (SELECT 1 FROM done WHERE done.job = edge.upstream)
             OR EXISTS (SELECT 1 FROM unpropagated WHERE unpropagated.job = edge.upstream)))
  AND (job.kind = 'Job' OR NOT EXISTS (
      SELECT 1 FROM run CROSS JOIN job AS member ON member.id BETWEEN oldest.job + 1 AND run.last
      WHERE run.id = job.run AND member.group_id = oldest.job
        AND (NOT EXISTS (SELECT 1 FROM done WHERE done.job = member.id)
             OR EXISTS (SELECT 1 FROM unpropagated WHERE unpropagated.job = member.id))))
