-- is_reserved_for_alone: return whether a worker is kept free for a job that must run alone: the
-- least loaded workers are, one per such job.
CREATE OR REPLACE FUNCTION workron.is_reserved_for_alone(_worker workron.worker) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    WITH load AS (
        SELECT w.id, count(r.job) AS claims
        FROM workron.worker w LEFT JOIN workron.running r ON r.worker = w.id
        WHERE w.pool = _worker.pool AND NOT w.draining
        GROUP BY w.id
        HAVING NOT coalesce(bool_or(r.alone), false)
    )
    SELECT (SELECT count(*) FROM load, load AS mine
            WHERE mine.id = _worker.id AND (load.claims, load.id) < (mine.claims, mine.id))
         < (SELECT count(*) FROM workron.ready WHERE pool = _worker.pool AND alone)
$$;
