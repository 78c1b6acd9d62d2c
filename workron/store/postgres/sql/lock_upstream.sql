-- lock_upstream: lock an unfinished job in its table, so that its end sees an edge that the caller
-- adds; false if it has ended and was propagated.
-- A job that moves at the same time is looked for again. `done` is read before `unpropagated`: one
-- transaction writes both, so a reader of the first sees the second unless it was propagated.
CREATE OR REPLACE FUNCTION workron.lock_upstream(_job bigint) RETURNS boolean
LANGUAGE plpgsql
AS $$
BEGIN
    LOOP
        PERFORM 1 FROM workron.running WHERE job = _job FOR SHARE; -- guard: upstream
        IF FOUND THEN RETURN true; END IF;
        PERFORM 1 FROM workron.waiting WHERE job = _job FOR SHARE; -- guard: upstream
        IF FOUND THEN RETURN true; END IF;
        PERFORM 1 FROM workron.ready WHERE job = _job FOR SHARE; -- guard: upstream
        IF FOUND THEN RETURN true; END IF;
        PERFORM 1 FROM workron.deferred WHERE job = _job FOR SHARE; -- guard: upstream
        IF FOUND THEN RETURN true; END IF;
        PERFORM 1 FROM workron.done WHERE job = _job;
        IF FOUND THEN
            PERFORM 1 FROM workron.unpropagated WHERE job = _job FOR SHARE; -- guard: upstream
            RETURN FOUND;
        END IF;
    END LOOP;
END
$$;
