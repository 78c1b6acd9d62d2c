-- walk: lock the first of a pool's ready jobs, by priority, then by age.
-- Who has a mark begins there, and looks back every two seconds, or when there is nothing else. It may
-- miss for some time what has come before the mark since, but for what its own ends freed (`pull_mark`).
CREATE OR REPLACE FUNCTION workron.walk(_pool integer, _limit integer) RETURNS bigint[]
LANGUAGE plpgsql
AS $$
DECLARE
    _mark record := workron.mark(_pool);
    _picked bigint[];
BEGIN
    IF NOT _mark.holds THEN
        RETURN workron.walk_all(_pool, _limit);
    END IF;
    IF _mark.looks THEN
        _picked := workron.look_back(_pool, _limit, false);
    END IF;
    IF cardinality(_picked) = _limit THEN
        RETURN _picked;
    END IF;
    _picked := _picked || workron.walk_on(_pool, _limit - coalesce(cardinality(_picked), 0));
    IF _picked IS NULL AND NOT _mark.looks THEN
        _picked := workron.look_back(_pool, _limit, _mark.has_just_looked);
    END IF;
    RETURN _picked;
END
$$;
