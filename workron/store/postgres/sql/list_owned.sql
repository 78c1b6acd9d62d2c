-- list_owned: list unfinished runs made from cluster objects, in order of id.
-- A run ends last of all its jobs. So this goes from an unfinished job to its run and continues after
-- the last job of that run: a few index searches per unfinished run, whatever has ended.
CREATE OR REPLACE FUNCTION workron.list_owned(_limit integer, _after bigint)
RETURNS TABLE (
    run bigint, uid uuid, kind text, namespace text, name text, generation bigint,
    submitted_at timestamptz, has_ended boolean
)
LANGUAGE plpgsql STABLE
AS $$
DECLARE
    _job      bigint := _after;
    -- The next job in each table; null: none.
    _waiting  bigint := _after;
    _ready    bigint := _after;
    _deferred bigint := _after;
    _running  bigint := _after;
    _run     workron.run;
    _found    integer := 0;
BEGIN
    WHILE _found < _limit LOOP
        -- Search a table again only after passing its job: many dead entries may precede the next.
        IF _waiting <= _job THEN
            SELECT min(q.job) INTO _waiting FROM workron.waiting q WHERE q.job > _job;
        END IF;
        IF _ready <= _job THEN
            SELECT min(q.job) INTO _ready FROM workron.ready q WHERE q.job > _job;
        END IF;
        IF _deferred <= _job THEN
            SELECT min(q.job) INTO _deferred FROM workron.deferred q WHERE q.job > _job;
        END IF;
        IF _running <= _job THEN
            SELECT min(q.job) INTO _running FROM workron.running q WHERE q.job > _job;
        END IF;
        _job := least(_waiting, _ready, _deferred, _running);
        EXIT WHEN _job IS NULL;
        SELECT * INTO _run FROM workron.run r WHERE r.id <= _job ORDER BY r.id DESC LIMIT 1;
        _job := greatest(_job, _run.last);
        CONTINUE WHEN _run.id <= _after OR _run.generation IS NULL;
        _found := _found + 1;
        RETURN QUERY SELECT _run.id, _run.uid, _run.kind, _run.namespace, _run.name,
            _run.generation, _run.submitted_at, false;
    END LOOP;
END
$$;
