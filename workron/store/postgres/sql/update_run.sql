-- update_run: apply the mutable fields of a cluster object to its run, unless its generation is not
-- newer; true if anything changes, which `bulk_update_step` carries out.
CREATE OR REPLACE FUNCTION workron.update_run(
    _run bigint, _generation bigint, _cancelled boolean, _forced boolean, _suspended boolean,
    _priority integer
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    _old workron.run;
    _operation text;
BEGIN
    SELECT * INTO _old FROM workron.run WHERE id = _run AND generation < _generation
    FOR UPDATE; -- guard: update_run
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE workron.run SET generation = _generation WHERE id = _run;
    IF EXISTS (SELECT 1 FROM workron.done WHERE job = _run) THEN
        RETURN false;
    END IF;
    _operation := CASE WHEN _forced AND NOT _old.forced OR _cancelled AND NOT _old.cancelled THEN 'cancel'
                       WHEN _old.cancelled THEN NULL
                       WHEN _suspended AND NOT _old.suspended THEN 'suspend'
                       WHEN _old.suspended AND NOT _suspended THEN 'resume' END;
    IF _operation IS NULL AND _priority = _old.priority THEN
        RETURN false;
    END IF;
    UPDATE workron.run
    SET cancelled = _old.cancelled OR _cancelled OR _forced,
        cancel_requested = _old.cancel_requested OR _cancelled OR _forced,
        forced = _old.forced OR _forced,
        suspended = _suspended AND NOT (_old.cancelled OR _cancelled OR _forced),
        priority = _priority
    WHERE id = _run;
    INSERT INTO workron.bulk_update AS s (run, operation, priority)
    VALUES (_run, _operation, CASE WHEN _priority <> _old.priority THEN _priority END)
    ON CONFLICT (run) DO UPDATE
    SET operation = coalesce(excluded.operation, s.operation), priority = coalesce(excluded.priority, s.priority);
    RETURN true;
END
$$;
