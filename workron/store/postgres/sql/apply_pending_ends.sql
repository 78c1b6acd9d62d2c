-- apply_pending_ends: apply pending ends to those wide rows that can be locked now, and return the
-- locked rows.
-- Ends of a row that is locked stay pending until the next call, from a worker that finds nothing
-- ready or at the latest from the maintainer.
CREATE OR REPLACE FUNCTION workron.apply_pending_ends(_jobs bigint[]) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _locked bigint[];
BEGIN
    SELECT coalesce(array_agg(job), '{}') INTO _locked FROM (
        SELECT job FROM workron.waiting WHERE job = ANY (_jobs) ORDER BY job
        FOR UPDATE SKIP LOCKED -- guard: pending_ends
    ) lockable;
    -- Read after the lock, so that all pending ends inserted before it are visible.
    IF EXISTS (SELECT 1 FROM workron.pending_end WHERE job = ANY (_locked)) THEN
        WITH taken AS (
            DELETE FROM workron.pending_end WHERE job = ANY (_locked) RETURNING job, count, verdict
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
