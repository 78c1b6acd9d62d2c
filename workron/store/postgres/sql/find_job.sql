-- find_job: the id of one job of a run by its name, an array's element by its index as well.
CREATE OR REPLACE FUNCTION workron.find_job(_run bigint, _name text, _index integer) RETURNS bigint
LANGUAGE sql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
    SELECT j.id
    FROM workron.run r JOIN workron.job j ON j.id BETWEEN r.id + 1 AND r.last
    WHERE r.id = _run AND j.name = _name AND j.index IS NOT DISTINCT FROM _index
    LIMIT 1
$$;
