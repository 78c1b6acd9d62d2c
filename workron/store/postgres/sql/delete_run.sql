-- delete_run: take the name from an ended run that is about to be deleted, so that no other run can
-- depend on it from now on; or say why it must stay. `delete_run_step` deletes its rows.
-- The row of the name stays without a run: a submission may be about to lock it.
CREATE OR REPLACE FUNCTION workron.delete_run(_run bigint) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
    _last bigint;
    _generation bigint;
BEGIN
    PERFORM 1 FROM workron.name
    WHERE (namespace, kind, name) = (SELECT namespace, kind, name FROM workron.run WHERE id = _run)
    FOR UPDATE; -- guard: delete_run
    SELECT last, generation INTO _last, _generation FROM workron.run WHERE id = _run;
    IF _generation IS NOT NULL THEN
        RETURN 'Owned';
    END IF;
    IF EXISTS (SELECT 1 FROM workron.run WHERE id = _run)
        AND (NOT EXISTS (SELECT 1 FROM workron.done WHERE job = _run)
             OR EXISTS (SELECT 1 FROM workron.unpropagated WHERE job BETWEEN _run AND _last)
             OR EXISTS (SELECT 1 FROM workron.bulk_update WHERE run = _run)) THEN
        RETURN 'Unfinished';
    END IF;
    IF EXISTS (SELECT 1 FROM workron.edge e
               WHERE e.upstream = _run AND e.downstream NOT BETWEEN _run AND _last
                 AND NOT EXISTS (SELECT 1 FROM workron.done d WHERE d.job = e.downstream)) THEN
        RETURN 'Needed';
    END IF;
    UPDATE workron.name n SET run = NULL
    FROM workron.run r
    WHERE r.id = _run AND n.run = _run AND (n.namespace, n.kind, n.name) = (r.namespace, r.kind, r.name);
    RETURN NULL;
END
$$;
