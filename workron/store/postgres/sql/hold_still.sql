-- hold_still: lock a live job where it now is, so that its end comes after our commit and sees it;
-- false when it has ended and its downstreams have been told. A job that moves while it is looked for
-- is looked for again. `done` is read before `unsettled`: both are written by one transaction, so who
-- sees the first sees the second, unless it was told already.
CREATE OR REPLACE FUNCTION workron.hold_still(_job bigint) RETURNS boolean
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
            PERFORM 1 FROM workron.unsettled WHERE job = _job FOR SHARE; -- guard: upstream
            RETURN FOUND;
        END IF;
    END LOOP;
END
$$;
