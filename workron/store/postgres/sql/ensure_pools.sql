-- ensure_pools: return the ids of the named pools, and create missing ones.
CREATE OR REPLACE FUNCTION workron.ensure_pools(_namespaces text[], _names text[])
RETURNS TABLE (namespace text, name text, id integer)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
BEGIN
    INSERT INTO workron.pool (namespace, name)
    SELECT DISTINCT w.namespace, w.name FROM unnest(_namespaces, _names) AS w(namespace, name)
    WHERE NOT EXISTS (SELECT 1 FROM workron.pool p
                      WHERE p.namespace = w.namespace AND p.name = w.name)
    ORDER BY 1, 2
    ON CONFLICT DO NOTHING;
    RETURN QUERY
    SELECT p.namespace, p.name, p.id FROM workron.pool p
    WHERE (p.namespace, p.name) IN (SELECT * FROM unnest(_namespaces, _names));
END
$$;
