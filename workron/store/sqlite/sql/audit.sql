-- audit: how many of the oldest waiting jobs wait although all that they wait for has ended.

-- name: missed
-- An end that is still to be passed on is not missed.
SELECT count(*) AS missed
FROM (SELECT job, held, unproven FROM waiting ORDER BY job LIMIT :limit) AS oldest
CROSS JOIN job ON job.id = oldest.job
WHERE NOT oldest.held AND NOT oldest.unproven
  AND NOT EXISTS (SELECT 1 FROM unbound WHERE unbound.child = oldest.job)
  AND NOT EXISTS (
      SELECT 1 FROM edge
      WHERE edge.child = oldest.job
        AND (NOT EXISTS (SELECT 1 FROM done WHERE done.job = edge.parent)
             OR EXISTS (SELECT 1 FROM unsettled WHERE unsettled.job = edge.parent)))
  AND (job.kind = 'Job' OR NOT EXISTS (
      SELECT 1 FROM root CROSS JOIN job AS member ON member.id BETWEEN oldest.job + 1 AND root.last
      WHERE root.id = job.root AND member.member_of = oldest.job
        AND (NOT EXISTS (SELECT 1 FROM done WHERE done.job = member.id)
             OR EXISTS (SELECT 1 FROM unsettled WHERE unsettled.job = member.id))))
