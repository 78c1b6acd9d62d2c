-- audit: how many of the waiting jobs behind an id wait although everything that they wait for has ended,
-- and the id that the next look goes on from.
CREATE OR REPLACE FUNCTION workron.audit(_limit integer, _after bigint)
RETURNS TABLE (missed bigint, last bigint)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
    RETURN QUERY
    WITH seen AS MATERIALIZED (
        SELECT * FROM workron.waiting WHERE job > _after ORDER BY job LIMIT _limit
    )
    SELECT (
        SELECT count(*)
        FROM seen w
        JOIN workron.job j ON j.id = w.job
        JOIN workron.run r ON r.id = j.run
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
              WHERE m.id BETWEEN w.job + 1 AND r.last AND m.group_id = w.job
                AND (d.job IS NULL OR u.job IS NOT NULL)))
    ), (SELECT CASE WHEN count(*) = _limit THEN max(job) ELSE 0 END FROM seen);
END
$$;
