-- reap: take a worker's claims back and forget it, if its counter still is what the maintainer saw.
-- Running -> Queued (reap)
-- Running -> Waiting (suspend)
-- Running -> Failed (fail)
-- A counter counts only in the run of the server that showed it. A null one says that its death is
-- proven. The worker's row is locked first: a claim holds it shared, so no claim of this worker can
-- commit after its reap.
CREATE OR REPLACE FUNCTION workron.reap(
    _worker bigint, _server text, _beats bigint, _is_blaming boolean
) RETURNS TABLE (was_reaped boolean, job bigint, place text)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    _row workron.worker;
    _jobs bigint[];
    _fell integer;
BEGIN
    SELECT * INTO _row FROM workron.worker
    WHERE id = _worker AND (_beats IS NULL OR (beats = _beats AND workron.server() = _server))
    FOR UPDATE; -- guard: reap
    RETURN QUERY SELECT FOUND, NULL::bigint, NULL::text;
    SELECT array_agg(job) INTO _jobs FROM (
        SELECT job FROM workron.running WHERE worker = _row.id ORDER BY job FOR UPDATE
    ) fallen;
    _fell := coalesce(cardinality(_jobs), 0);
    RETURN QUERY SELECT NULL::boolean, g.job, g.place
        FROM workron.give_back(_jobs, 'Lost', (_fell = 1 AND _is_blaming)::integer,
                               _fell > 1 AND _is_blaming, _beats IS NULL) g;
    -- What it held may have fallen earlier, without proof.
    IF _beats IS NULL THEN
        RETURN QUERY SELECT NULL::boolean, d.job, 'ready'
            FROM workron.prove_dead(_worker, _row.pool, _row.name) d;
    END IF;
    DELETE FROM workron.worker WHERE id = _row.id;
END
$$;
