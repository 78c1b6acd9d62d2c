-- delete_run_step: delete the rows of a bounded number of a run's jobs, the last ones first, and the
-- run with its first job; true if nothing is left.
CREATE OR REPLACE FUNCTION workron.delete_run_step(_run bigint, _limit integer) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    _first bigint;
    _last bigint;
BEGIN
    SELECT j.id INTO _last FROM workron.run r JOIN workron.job j ON j.id BETWEEN r.id AND r.last
    WHERE r.id = _run ORDER BY j.id DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN true;
    END IF;
    _first := greatest(_run, _last - _limit + 1);
    DELETE FROM workron.output WHERE job BETWEEN _first AND _last;
    DELETE FROM workron.result WHERE job BETWEEN _first AND _last;
    DELETE FROM workron.attempt WHERE job BETWEEN _first AND _last;
    DELETE FROM workron.edge WHERE upstream BETWEEN _first AND _last;
    DELETE FROM workron.edge WHERE downstream BETWEEN _first AND _last;
    DELETE FROM workron.external_dependency WHERE downstream BETWEEN _first AND _last;
    DELETE FROM workron.deadline WHERE job BETWEEN _first AND _last;
    DELETE FROM workron.pending_end WHERE job BETWEEN _first AND _last;
    DELETE FROM workron.awaiting_proof WHERE job BETWEEN _first AND _last;
    -- The specs of a run have ids in the range of its jobs.
    DELETE FROM workron.spec WHERE id BETWEEN _first AND _last;
    DELETE FROM workron.done WHERE job BETWEEN _first AND _last;
    DELETE FROM workron.job WHERE id BETWEEN _first AND _last;
    IF _first > _run THEN
        RETURN false;
    END IF;
    DELETE FROM workron.run WHERE id = _run;
    RETURN true;
END
$$;
