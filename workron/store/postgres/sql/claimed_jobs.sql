-- claimed_jobs: return what a worker needs to run those of its claims that have these ids.
-- Item, spec and inputs are JSON inside a JSON string, so that their numbers are not rewritten.
-- Inputs are an SQL null if there are none, and a JSON null if they are too large. LANGUAGE sql, so
-- that it is inlined into the calling statement.
CREATE OR REPLACE FUNCTION workron.claimed_jobs(_worker bigint, _claims uuid[])
RETURNS TABLE (
    job bigint, claim uuid, attempt integer, failures integer, losses integer, fence bigint,
    namespace text, run text, name text, index integer, item jsonb, spec jsonb, inputs jsonb,
    run_state text
)
LANGUAGE sql STABLE
AS $$
    WITH held AS MATERIALIZED (
        SELECT c.job, c.claim, c.attempt, c.failures, c.losses, c.fence, r.namespace, r.name AS run,
               j.name, j.index, j.item, s.body, c.priority,
               -- The job after the run is the group of its tasks, in a workflow with `finally`.
               CASE WHEN c.job >= r.finally_from
                    THEN (SELECT d.state FROM workron.done d WHERE d.job = r.id + 1) END AS run_state,
               -- Few jobs have inputs, and building them costs more than the rest of the query. Not
               -- EXISTS, for which the planner may read all edges into a hash table.
               CASE WHEN j.feeds_inputs THEN coalesce((
                   SELECT true FROM workron.edge e
                   JOIN workron.job p ON p.id = e.upstream
                   LEFT JOIN workron.result x ON x.job = e.upstream
                   WHERE e.downstream = c.job AND (p.kind = 'Array' OR x.job IS NOT NULL) LIMIT 1
               ), false) ELSE false END AS has_inputs
        FROM workron.running c
        -- `= ANY (ARRAY[...])` allows only a lookup by key for each claim, whatever the statistics.
        JOIN workron.job j ON j.id = ANY (ARRAY[c.job])
        JOIN workron.run r ON r.id = ANY (ARRAY[j.run])
        JOIN workron.spec s ON s.id = ANY (ARRAY[j.spec])
        -- By claim and not by worker, which may hold many more claims.
        WHERE c.claim = ANY (_claims) AND int8eq(c.worker, _worker)
    ), with_inputs AS (
        SELECT m.*, NULL::jsonb AS inputs FROM held m WHERE NOT m.has_inputs
        UNION ALL
        SELECT m.*, i.inputs
        FROM workron.job_inputs(ARRAY(SELECT w.job FROM held w WHERE w.has_inputs)) i
        -- LATERAL reads the inputs, which may be large, once and not once per claim.
        CROSS JOIN LATERAL (SELECT * FROM held WHERE held.job = i.job OFFSET 0) m
    )
    SELECT g.job, g.claim, g.attempt, g.failures, g.losses, g.fence, g.namespace, g.run, g.name,
           g.index, to_jsonb(g.item), to_jsonb(g.body), g.inputs, g.run_state
    FROM with_inputs g
    ORDER BY g.priority DESC, g.job
$$;
