-- job_inputs: return for each job the results of its upstreams by name, as JSON in a JSON string; a
-- JSON null if they are too large, an SQL null if there are none.
-- Sizes are checked first, so that large inputs are never built, and each upstream is read once for
-- all elements of an array. It uses window functions because joins of these sets could only be nested
-- loops here.
CREATE OR REPLACE FUNCTION workron.job_inputs(_jobs bigint[])
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
        SELECT wanted.job, e.upstream, to_json(p.name)::text AS name,
               row_number() OVER (PARTITION BY e.upstream) AS turn
        FROM unnest(_jobs) AS wanted(job)
        LEFT JOIN workron.edge e ON e.downstream = wanted.job
        LEFT JOIN workron.job p ON p.id = e.upstream
    ), sized AS (
        SELECT *, max(CASE turn WHEN 1 THEN workron.result_size(upstream) END)
                  OVER (PARTITION BY upstream) AS size
        FROM upstream
    ), judged AS (
        SELECT *, sum(size + octet_length(name) + 4) OVER (PARTITION BY job) AS total FROM sized
    ), fitting AS (
        SELECT *, row_number() OVER (PARTITION BY upstream, fits) AS fitting_turn
        FROM (SELECT *, total <= 1048576 AND size IS NOT NULL AS fits FROM judged) f
    ), worded AS (
        SELECT *, max(CASE WHEN fits AND fitting_turn = 1 THEN workron.result_text(upstream) END)
                  OVER (PARTITION BY upstream, fits) AS body
        FROM fitting
    )
    SELECT job, CASE
        WHEN max(total) > 1048576 THEN 'null'::jsonb
        ELSE to_jsonb('{' || string_agg(name || ': ' || body, ', ' ORDER BY upstream) || '}') END
    FROM worded GROUP BY job;
END
$$;
