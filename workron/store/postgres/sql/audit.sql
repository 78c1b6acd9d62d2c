-- audit: count waiting jobs after an id although everything that they wait for has ended, and return
-- the id to continue after.
CREATE OR REPLACE FUNCTION workron.audit(_limit integer, _after bigint)
RETURNS TABLE (missed bigint, last bigint)
LANGUAGE plpgsql
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
        WHERE NOT w.suspended AND NOT w.awaits_proof
          AND NOT EXISTS (SELECT 1 FROM workron.external_dependency u WHERE u.downstream = w.job)
          AND NOT EXISTS (SELECT 1 FROM workron.pending_end a WHERE a.job = w.job)
          AND NOT EXISTS (
              SELECT 1 FROM workron.edge e
              LEFT JOIN workron.done d ON d.job = e.upstream
              LEFT JOIN workron.unpropagated u ON u.job = e.upstream
              WHERE e.downstream = w.job AND (d.job IS NULL OR u.job IS NOT NULL))
          AND (j.kind = 'Job' OR NOT EXISTS (
              SELECT 1 FROM workron.job m
              LEFT JOIN workron.done d ON d.job = m.id
              LEFT JOIN workron.unpropagated u ON u.job = m.id
              WHERE m.id BETWEEN w.job + 1 AND r.last AND m.group_id = w.job
                AND (d.job IS NULL OR u.job IS NOT NULL)))
    ), (SELECT CASE WHEN count(*) = _limit THEN max(job) ELSE 0 END FROM seen);
END
$$;
