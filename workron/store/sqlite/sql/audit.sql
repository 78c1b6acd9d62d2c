-- audit: how many of the waiting jobs behind an id wait although all that they wait for has ended, and
-- the id that the next look goes on from.

-- name: audit
-- An end that is still to be passed on is not missed.
WITH seen AS MATERIALIZED (
    SELECT job, held, unproven FROM waiting WHERE job > :after ORDER BY job LIMIT :limit
)
SELECT count(*) AS missed,
       (SELECT CASE WHEN count(*) = :limit THEN max(job) ELSE 0 END FROM seen) AS last
FROM seen AS oldest
CROSS JOIN job ON job.id = oldest.job
WHERE NOT oldest.held AND NOT oldest.unproven
  AND NOT EXISTS (SELECT 1 FROM unbound WHERE unbound.child = oldest.job)
  AND NOT EXISTS (
      SELECT 1 FROM edge
      WHERE edge.child = oldest.job
        AND (NOT EXISTS (SELECT 1 FROM done WHERE done.job = edge.parent)
             OR EXISTS (SELECT 1 FROM unsettled WHERE unsettled.job = edge.parent)))
  AND (job.kind = 'Job' OR NOT EXISTS (
      SELECT 1 FROM run CROSS JOIN job AS member ON member.id BETWEEN oldest.job + 1 AND run.last
      WHERE run.id = job.run AND member.group_id = oldest.job
        AND (NOT EXISTS (SELECT 1 FROM done WHERE done.job = member.id)
             OR EXISTS (SELECT 1 FROM unsettled WHERE unsettled.job = member.id))))
