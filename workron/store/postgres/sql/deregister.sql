-- deregister: forget a worker that goes; what it still holds is released.
-- Running -> Queued (release)
CREATE OR REPLACE FUNCTION workron.deregister(_key uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = workron, pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    _worker bigint;
    _jobs bigint[];
BEGIN
    SELECT id INTO _worker FROM workron.worker WHERE session = _key FOR UPDATE;
    SELECT array_agg(job) INTO _jobs FROM (
        SELECT job FROM workron.running WHERE worker = _worker ORDER BY job FOR UPDATE
    ) mine;
    PERFORM workron.give_back(_jobs, 'Released', 0, false, true);
    DELETE FROM workron.worker WHERE id = _worker;
END
$$;
