-- sum_arrivals: tell wide rows what has arrived, where their lock is free; gives those that are locked now.
-- Who finds a row locked leaves its arrivals to the next one that comes, a worker that finds nothing
-- ready, at the latest the maintainer.
CREATE OR REPLACE FUNCTION workron.sum_arrivals(_jobs bigint[]) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _locked bigint[];
BEGIN
    SELECT coalesce(array_agg(job), '{}') INTO _locked FROM (
        SELECT job FROM workron.waiting WHERE job = ANY (_jobs) ORDER BY job
        FOR UPDATE SKIP LOCKED -- guard: arrivals
    ) free;
    -- Only now, with the lock held, is what was appended before it seen whole.
    IF EXISTS (SELECT 1 FROM workron.arrival WHERE job = ANY (_locked)) THEN
        WITH taken AS (
            DELETE FROM workron.arrival WHERE job = ANY (_locked) RETURNING job, count, verdict
        ), summed AS (
            SELECT job, sum(count)::integer AS count, max(verdict) AS verdict FROM taken GROUP BY job
        )
        UPDATE workron.waiting w
        SET remaining = w.remaining - s.count, verdict = greatest(w.verdict, s.verdict)
        FROM summed s WHERE w.job = s.job;
    END IF;
    RETURN _locked;
END
$$;
