-- claimed: all that a worker needs to know of those claims under these ids that are its own.
-- Item, spec and inputs are JSON inside a JSON string: so their numbers stay as they were written. An
-- SQL null says that there is none, a JSON null that the inputs are more than a job is given.
-- In SQL, so that it becomes a part of the statement that asks.
CREATE OR REPLACE FUNCTION workron.claimed(_worker bigint, _claims uuid[])
RETURNS TABLE (
    job bigint, claim uuid, attempt integer, failures integer, losses integer, fence bigint,
    namespace text, run text, name text, index integer, item jsonb, spec jsonb, inputs jsonb
)
LANGUAGE sql STABLE
AS $$
    WITH mine AS MATERIALIZED (
        SELECT c.job, c.claim, c.attempt, c.failures, c.losses, c.fence, r.namespace, r.name AS run,
               j.name, j.index, j.item, s.body, c.priority,
               -- Mostly nothing is given, and putting inputs together costs more than all the rest. Not
               -- EXISTS, for which all edges that there ever were may be read into a hash.
               CASE WHEN j.feeds_inputs THEN coalesce((
                   SELECT true FROM workron.edge e
                   JOIN workron.job p ON p.id = e.parent
                   LEFT JOIN workron.result x ON x.job = e.parent
                   WHERE e.child = c.job AND (p.kind = 'Array' OR x.job IS NOT NULL) LIMIT 1
               ), false) ELSE false END AS is_given
        FROM workron.running c
        -- In arrays of one, which only keys answer to: each claim looks for its own job, whatever
        -- statistics say of how few there are.
        JOIN workron.job j ON j.id = ANY (ARRAY[c.job])
        JOIN workron.run r ON r.id = ANY (ARRAY[j.run])
        JOIN workron.spec s ON s.id = ANY (ARRAY[j.spec])
        -- By claims and not by their worker, which may hold many more.
        WHERE c.claim = ANY (_claims) AND int8eq(c.worker, _worker)
    ), given AS (
        SELECT m.*, NULL::jsonb AS inputs FROM mine m WHERE NOT m.is_given
        UNION ALL
        SELECT m.*, i.inputs
        FROM workron.inputs_of(ARRAY(SELECT w.job FROM mine w WHERE w.is_given)) i
        -- LATERAL has the inputs, which may be large, read once and not once for each claim.
        CROSS JOIN LATERAL (SELECT * FROM mine WHERE mine.job = i.job OFFSET 0) m
    )
    SELECT g.job, g.claim, g.attempt, g.failures, g.losses, g.fence, g.namespace, g.run, g.name,
           g.index, to_jsonb(g.item), to_jsonb(g.body), g.inputs
    FROM given g
    ORDER BY g.priority DESC, g.job
$$;
