-- inputs_of: for each of these jobs the results of its upstreams by name, as JSON in a JSON string; a
-- JSON null where they are more than a job is given, an SQL null where there are none.
-- Sizes are asked for first, so that what is too large is never put together; and once for each
-- upstream, for the elements of an array share theirs. Windows, because joins of these sets could only
-- be nested loops here.
CREATE OR REPLACE FUNCTION workron.inputs_of(_jobs bigint[])
RETURNS TABLE (job bigint, inputs jsonb)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
    IF cardinality(_jobs) = 0 THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH upstream AS (
        SELECT wanted.job, e.parent, to_json(p.name)::text AS name,
               row_number() OVER (PARTITION BY e.parent) AS turn
        FROM unnest(_jobs) AS wanted(job)
        LEFT JOIN workron.edge e ON e.child = wanted.job
        LEFT JOIN workron.job p ON p.id = e.parent
    ), sized AS (
        SELECT *, max(CASE turn WHEN 1 THEN workron.result_size(parent) END)
                  OVER (PARTITION BY parent) AS size
        FROM upstream
    ), judged AS (
        SELECT *, sum(size + octet_length(name) + 4) OVER (PARTITION BY job) AS total FROM sized
    ), fitting AS (
        SELECT *, row_number() OVER (PARTITION BY parent, fits) AS fitting_turn
        FROM (SELECT *, total <= 1048576 AND size IS NOT NULL AS fits FROM judged) f
    ), worded AS (
        SELECT *, max(CASE WHEN fits AND fitting_turn = 1 THEN workron.result_text(parent) END)
                  OVER (PARTITION BY parent, fits) AS body
        FROM fitting
    )
    SELECT job, CASE
        WHEN max(total) > 1048576 THEN 'null'::jsonb
        ELSE to_jsonb('{' || string_agg(name || ': ' || body, ', ' ORDER BY parent) || '}') END
    FROM worded GROUP BY job;
END
$$;
