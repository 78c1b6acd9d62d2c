-- submit_lock_names: lock all names that a submission has or depends on, and return the existing
-- runs.
-- Both sides of an external dependency lock its name, so neither can miss the other.
CREATE OR REPLACE FUNCTION workron.submit_lock_names(_runs jsonb, _awaited jsonb)
RETURNS TABLE (number bigint, known bigint, known_suspended boolean, unfinished bigint,
               digest text, unfinished_suspended boolean,
               unfinished_cancelled boolean, now timestamptz, transaction xid8)
LANGUAGE plpgsql
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
    SELECT s.number, known.id, known.suspended, named.id, named.digest, named.suspended,
           named.cancelled, workron.now(),
           pg_current_xact_id()
    FROM ROWS FROM (jsonb_to_recordset(_runs) AS (namespace text, kind text, name text, uid uuid))
         WITH ORDINALITY AS s(namespace, kind, name, uid, number)
    JOIN workron.name n USING (namespace, kind, name)
    LEFT JOIN workron.run known ON known.uid = s.uid
    LEFT JOIN workron.run named ON named.id = n.run
        AND NOT EXISTS (SELECT 1 FROM workron.done d WHERE d.job = n.run)
    ORDER BY s.number;
END
$$;
