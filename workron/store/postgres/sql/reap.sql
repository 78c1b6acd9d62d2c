-- reap: requeue a worker's claims and delete it, if its heartbeat counter is unchanged.
-- Running -> Queued (reap)
-- Running -> Waiting (suspend)
-- Running -> Failed (fail)
-- A counter is comparable only within one start of the server. A null counter says that the death is
-- proven. The worker's row is locked first: a claim holds it shared, so no claim of this worker can
-- commit after its reap.
CREATE OR REPLACE FUNCTION workron.reap(
    _worker bigint, _server text, _heartbeats bigint, _charge_losses boolean
) RETURNS TABLE (was_reaped boolean, job bigint, destination text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _row workron.worker;
    _jobs bigint[];
    _lost integer;
BEGIN
    SELECT * INTO _row FROM workron.worker
    WHERE id = _worker AND (_heartbeats IS NULL OR (heartbeats = _heartbeats AND workron.server_start() = _server))
    FOR UPDATE; -- guard: reap
    RETURN QUERY SELECT FOUND, NULL::bigint, NULL::text;
    SELECT array_agg(job) INTO _jobs FROM (
        SELECT job FROM workron.running WHERE worker = _row.id ORDER BY job FOR UPDATE
    ) claims;
    _lost := coalesce(cardinality(_jobs), 0);
    RETURN QUERY SELECT NULL::boolean, g.job, g.destination
        FROM workron.requeue(_jobs, 'Lost', (_lost = 1 AND _charge_losses)::integer,
                               _lost > 1 AND _charge_losses, _heartbeats IS NULL) g;
    -- Jobs that it lost earlier may wait for this proof.
    IF _heartbeats IS NULL THEN
        RETURN QUERY SELECT NULL::boolean, d.job, 'ready'
            FROM workron.mark_worker_dead(_worker, _row.pool, _row.name) d;
    END IF;
    DELETE FROM workron.worker WHERE id = _row.id;
END
$$;
