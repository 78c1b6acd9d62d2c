-- pools: the ids of the named pools, made where they are new.
CREATE OR REPLACE FUNCTION workron.pools(_namespaces text[], _names text[])
RETURNS TABLE (namespace text, name text, id integer)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
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
