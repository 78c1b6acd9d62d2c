-- bulk_update_step: do one step of a bulk update of a run; true when it is finished.
-- One query over all tables decides whether it is finished: between two queries a job could move and
-- be seen by neither.
CREATE OR REPLACE FUNCTION workron.bulk_update_step(_run bigint, _limit integer) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    _operation text;
    _priority integer;
    _last bigint;
    _last_cancelled bigint;
    _is_over boolean;
BEGIN
    SELECT operation, priority INTO _operation, _priority
    FROM workron.bulk_update WHERE run = _run FOR UPDATE;
    IF NOT FOUND THEN
        RETURN true;
    END IF;
    -- Read only now: the request that this waited for may have changed the run.
    SELECT last, CASE WHEN forced OR finally_from IS NULL THEN last ELSE finally_from - 1 END
    INTO _last, _last_cancelled
    FROM workron.run WHERE id = _run;
    CASE _operation
        WHEN 'cancel' THEN
            PERFORM workron.bulk_cancel(_run, _last_cancelled, _limit);
            PERFORM workron.bulk_resume(_last_cancelled + 1, _last, _limit);
        WHEN 'suspend' THEN PERFORM workron.bulk_suspend(_run, _last, _limit);
        WHEN 'resume' THEN PERFORM workron.bulk_resume(_run, _last, _limit);
        ELSE NULL;
    END CASE;
    IF _priority IS NOT NULL THEN
        PERFORM workron.bulk_prioritize(_run, _last, _priority, _limit);
    END IF;

    SELECT NOT EXISTS (
        SELECT 1 FROM workron.ready WHERE job BETWEEN _run AND _last
            AND (_operation = 'suspend' OR _operation = 'cancel' AND job <= _last_cancelled
                 OR priority <> _priority)
        UNION ALL
        SELECT 1 FROM workron.deferred WHERE job BETWEEN _run AND _last
            AND (_operation = 'suspend' OR _operation = 'cancel' AND job <= _last_cancelled
                 OR priority <> _priority)
        UNION ALL
        SELECT 1 FROM workron.running WHERE job BETWEEN _run AND _last
            AND (priority <> _priority
                 OR CASE WHEN _operation = 'suspend' THEN signal IS NULL
                         WHEN _operation = 'cancel' AND job <= _last_cancelled
                         THEN signal IS DISTINCT FROM 'Cancel'
                         WHEN _operation IN ('cancel', 'resume') THEN signal = 'Suspend' END)
        UNION ALL
        SELECT 1 FROM workron.waiting w JOIN workron.job j ON j.id = w.job
        WHERE w.job BETWEEN _run AND _last
            AND (w.priority <> _priority
                 OR j.kind = 'Job'
                    AND CASE WHEN _operation = 'suspend' THEN NOT suspended
                             WHEN _operation = 'cancel' AND w.job <= _last_cancelled THEN true
                             WHEN _operation IN ('cancel', 'resume') THEN suspended END)
    ) INTO _is_over;
    IF _is_over THEN
        DELETE FROM workron.bulk_update WHERE run = _run;
    END IF;
    RETURN _is_over;
END
$$;
