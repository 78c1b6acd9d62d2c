-- audit: how many of the oldest waiting jobs wait although everything that they wait for has ended.
SELECT count(*)::integer AS missed
FROM (SELECT * FROM workron.waiting ORDER BY job LIMIT $1) w
JOIN workron.job j ON j.id = w.job
JOIN workron.root r ON r.id = j.root
WHERE NOT w.held AND NOT w.unproven
  AND NOT EXISTS (SELECT 1 FROM workron.unbound u WHERE u.child = w.job)
  AND NOT EXISTS (SELECT 1 FROM workron.arrival a WHERE a.job = w.job)
  AND NOT EXISTS (
      SELECT 1 FROM workron.edge e LEFT JOIN workron.done d ON d.job = e.parent
      WHERE e.child = w.job
        AND (d.job IS NULL OR EXISTS (SELECT 1 FROM workron.unsettled u WHERE u.job = e.parent)))
  AND (j.kind = 'Job' OR NOT EXISTS (
      SELECT 1 FROM workron.job m LEFT JOIN workron.done d ON d.job = m.id
      WHERE m.id BETWEEN w.job + 1 AND r.last AND m.member_of = w.job
        AND (d.job IS NULL OR EXISTS (SELECT 1 FROM workron.unsettled u WHERE u.job = m.id))));
