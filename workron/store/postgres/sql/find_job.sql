-- find_job: find a job of a run by name, and an element of an array also by index.
CREATE OR REPLACE FUNCTION workron.find_job(_run bigint, _name text, _index integer) RETURNS bigint
LANGUAGE sql STABLE
AS $$
    SELECT j.id
    FROM workron.run r JOIN workron.job j ON j.id BETWEEN r.id + 1 AND r.last
    WHERE r.id = _run AND j.kind <> 'Tasks' AND j.name = _name AND j.index IS NOT DISTINCT FROM _index
    LIMIT 1
$$;
