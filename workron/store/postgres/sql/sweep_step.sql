-- sweep_step: one bounded step of a cancel, hold or resume of a whole run, and of a change of its
-- priority; true when it is over.
-- Over is judged by one look at all places at once: a job that moves between two looks is in neither.
CREATE OR REPLACE FUNCTION workron.sweep_step(_run bigint, _limit integer) RETURNS boolean
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    _verb text;
    _priority integer;
    _last bigint;
    _is_over boolean;
BEGIN
    SELECT s.verb, s.priority, r.last INTO _verb, _priority, _last
    FROM workron.sweep s JOIN workron.run r ON r.id = s.run
    WHERE s.run = _run FOR UPDATE OF s;
    IF NOT FOUND THEN
        RETURN true;
    END IF;
    CASE _verb
        WHEN 'cancel' THEN PERFORM workron.sweep_cancel(_run, _last, _limit);
        WHEN 'hold' THEN PERFORM workron.sweep_hold(_run, _last, _limit);
        WHEN 'resume' THEN PERFORM workron.sweep_resume(_run, _last, _limit);
        ELSE NULL;
    END CASE;
    IF _priority IS NOT NULL THEN
        PERFORM workron.sweep_priority(_run, _last, _priority, _limit);
    END IF;

    SELECT NOT EXISTS (
        SELECT 1 FROM workron.ready WHERE job BETWEEN _run AND _last
            AND (_verb <> 'resume' OR priority <> _priority)
        UNION ALL
        SELECT 1 FROM workron.deferred WHERE job BETWEEN _run AND _last
            AND (_verb <> 'resume' OR priority <> _priority)
        UNION ALL
        SELECT 1 FROM workron.running WHERE job BETWEEN _run AND _last
            AND (priority <> _priority
                 OR CASE _verb WHEN 'cancel' THEN mark IS DISTINCT FROM 'Cancel'
                               WHEN 'hold' THEN mark IS NULL
                               WHEN 'resume' THEN mark = 'Hold' END)
        UNION ALL
        SELECT 1 FROM workron.waiting w JOIN workron.job j ON j.id = w.job
        WHERE w.job BETWEEN _run AND _last
            AND (w.priority <> _priority
                 OR j.kind = 'Job'
                    AND CASE _verb WHEN 'cancel' THEN true WHEN 'hold' THEN NOT held
                                   WHEN 'resume' THEN held END)
    ) INTO _is_over;
    IF _is_over THEN
        DELETE FROM workron.sweep WHERE run = _run;
    END IF;
    RETURN _is_over;
END
$$;
