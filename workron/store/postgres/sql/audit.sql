-- audit: how many of the oldest waiting jobs wait although everything that they wait for has ended.
CREATE OR REPLACE FUNCTION workron.audit(_limit integer) RETURNS integer
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
    RETURN (
        SELECT count(*)
        FROM (SELECT * FROM workron.waiting ORDER BY job LIMIT _limit) w
        JOIN workron.job j ON j.id = w.job
        JOIN workron.root r ON r.id = j.root
        WHERE NOT w.held AND NOT w.unproven
          AND NOT EXISTS (SELECT 1 FROM workron.unbound u WHERE u.child = w.job)
          AND NOT EXISTS (SELECT 1 FROM workron.arrival a WHERE a.job = w.job)
          AND NOT EXISTS (
              SELECT 1 FROM workron.edge e
              LEFT JOIN workron.done d ON d.job = e.parent
              LEFT JOIN workron.unsettled u ON u.job = e.parent
              WHERE e.child = w.job AND (d.job IS NULL OR u.job IS NOT NULL))
          AND (j.kind = 'Job' OR NOT EXISTS (
              SELECT 1 FROM workron.job m
              LEFT JOIN workron.done d ON d.job = m.id
              LEFT JOIN workron.unsettled u ON u.job = m.id
              WHERE m.id BETWEEN w.job + 1 AND r.last AND m.member_of = w.job
                AND (d.job IS NULL OR u.job IS NOT NULL)))
    );
END
$$;
