-- submit_reserve: lock every name that a submission has or awaits, and say what stands there now.
-- Both sides of an upstream that does not exist yet lock its name, so neither can miss the other.
CREATE OR REPLACE FUNCTION workron.submit_reserve(_runs jsonb, _awaited jsonb)
RETURNS TABLE (number bigint, known bigint, known_held boolean, unfinished bigint,
               digest text, unfinished_held boolean, now timestamptz)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO workron.name (namespace, kind, name)
    SELECT DISTINCT n.namespace, n.kind, n.name
    FROM jsonb_to_recordset(_runs || _awaited) AS n(namespace text, kind text, name text)
    ORDER BY 1, 2, 3
    ON CONFLICT DO NOTHING;
    PERFORM 1 FROM workron.name
    WHERE (namespace, kind, name) IN (
        SELECT n.namespace, n.kind, n.name
        FROM jsonb_to_recordset(_runs || _awaited) AS n(namespace text, kind text, name text))
    ORDER BY namespace, kind, name
    FOR UPDATE; -- guard: name

    RETURN QUERY
    SELECT s.number, known.id, known.held, named.id, named.digest, named.held, workron.now()
    FROM ROWS FROM (jsonb_to_recordset(_runs) AS (namespace text, kind text, name text, uid uuid))
         WITH ORDINALITY AS s(namespace, kind, name, uid, number)
    JOIN workron.name n USING (namespace, kind, name)
    LEFT JOIN workron.run known ON known.uid = s.uid
    LEFT JOIN workron.run named ON named.id = n.run
        AND NOT EXISTS (SELECT 1 FROM workron.done d WHERE d.job = n.run)
    ORDER BY s.number;
END
$$;
