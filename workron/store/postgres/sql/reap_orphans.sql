-- reap_orphans: requeue claims whose worker has no row.
-- Running -> Queued (reap)
CREATE OR REPLACE FUNCTION workron.reap_orphans(_limit integer) RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    _jobs bigint[];
BEGIN
    SELECT array_agg(job) INTO _jobs FROM (
        SELECT r.job FROM workron.running r
        WHERE NOT EXISTS (SELECT 1 FROM workron.worker w WHERE w.id = r.worker)
        ORDER BY r.job LIMIT _limit FOR UPDATE SKIP LOCKED
    ) orphan;
    PERFORM workron.requeue(_jobs, 'Lost', 0, true, false);
    RETURN coalesce(cardinality(_jobs), 0);
END
$$;
