-- update_run: ask of a run what its object says now, unless a newer edition of that was heard already; true
-- if that changes anything, and then `sweep_step` carries it out.
CREATE OR REPLACE FUNCTION workron.update_run(
    _run bigint, _generation bigint, _cancelled boolean, _held boolean, _priority integer
) RETURNS boolean
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    _old workron.run;
    _verb text;
BEGIN
    SELECT * INTO _old FROM workron.run WHERE id = _run AND generation < _generation
    FOR UPDATE; -- guard: edit
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE workron.run SET generation = _generation WHERE id = _run;
    IF _old.cancelled OR EXISTS (SELECT 1 FROM workron.done WHERE job = _run) THEN
        RETURN false;
    END IF;
    _verb := CASE WHEN _cancelled THEN 'cancel'
                  WHEN _held AND NOT _old.held THEN 'hold'
                  WHEN _old.held AND NOT _held THEN 'resume' END;
    IF _verb IS NULL AND _priority = _old.priority THEN
        RETURN false;
    END IF;
    UPDATE workron.run SET cancelled = _cancelled, held = _held, priority = _priority WHERE id = _run;
    INSERT INTO workron.sweep AS s (run, verb, priority)
    VALUES (_run, _verb, CASE WHEN _priority <> _old.priority THEN _priority END)
    ON CONFLICT (run) DO UPDATE
    SET verb = coalesce(excluded.verb, s.verb), priority = coalesce(excluded.priority, s.priority);
    RETURN true;
END
$$;
