-- deregister: delete a worker and release the claims that it holds.
-- Running -> Queued (release)
CREATE OR REPLACE FUNCTION workron.deregister(_key uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
AS $$
DECLARE
    _worker bigint;
    _jobs bigint[];
BEGIN
    SELECT id INTO _worker FROM workron.worker WHERE session = _key FOR UPDATE;
    SELECT array_agg(job) INTO _jobs FROM (
        SELECT job FROM workron.running WHERE worker = _worker ORDER BY job FOR UPDATE
    ) mine;
    PERFORM workron.requeue(_jobs, 'Released', 0, false, true);
    DELETE FROM workron.worker WHERE id = _worker;
END
$$;
