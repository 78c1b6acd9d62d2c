-- list_specs: list the specs of a run's jobs; the text comes with the first job that has it.
CREATE OR REPLACE FUNCTION workron.list_specs(_run bigint)
RETURNS TABLE (job bigint, spec bigint, body text)
LANGUAGE sql STABLE
AS $$
    SELECT j.id AS job, j.spec,
           CASE WHEN row_number() OVER (PARTITION BY j.spec ORDER BY j.id) = 1 THEN s.body END AS body
    FROM workron.run r
    JOIN workron.job j ON j.id BETWEEN r.id AND r.last
    JOIN workron.spec s ON s.id = j.spec
    WHERE r.id = _run
    ORDER BY j.id
$$;
