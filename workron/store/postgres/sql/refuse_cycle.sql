-- refuse_cycle: raise when one of these roots would wait for itself; the message is the cycle.
-- Only roots are walked: an edge that leaves a root starts at its own id, and the edges inside a
-- workflow were checked before it came here.
CREATE OR REPLACE FUNCTION workron.refuse_cycle(_roots bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _start bigint;
    _cycle text;
BEGIN
    IF cardinality(_roots) = 0 THEN
        RETURN;
    END IF;
    WITH RECURSIVE down (start, root) AS (
        SELECT e.parent, j.root
        FROM workron.edge e JOIN workron.job j ON j.id = e.child WHERE e.parent = ANY (_roots)
        UNION
        SELECT d.start, j.root
        FROM down d JOIN workron.edge e ON e.parent = d.root JOIN workron.job j ON j.id = e.child
    )
    SELECT start INTO _start FROM down WHERE root = start LIMIT 1;
    IF _start IS NULL THEN
        RETURN;
    END IF;
    -- Breadth first, and stopped at the first: a shortest way round.
    WITH RECURSIVE walk (root, path) AS (
        SELECT _start, ARRAY[_start]
        UNION ALL
        SELECT j.root, w.path || j.root
        FROM walk w JOIN workron.edge e ON e.parent = w.root JOIN workron.job j ON j.id = e.child
        WHERE j.root <> ALL (w.path[2:]) AND (cardinality(w.path) = 1 OR w.root <> _start)
    ), found AS (
        SELECT path FROM walk WHERE root = _start AND cardinality(path) > 1 LIMIT 1
    )
    SELECT string_agg(r.name, ' -> ' ORDER BY p.number) INTO _cycle
    FROM found, unnest(found.path) WITH ORDINALITY AS p(id, number)
    JOIN workron.root r ON r.id = p.id;
    RAISE EXCEPTION 'jobs wait for each other: %', _cycle USING ERRCODE = 'WK003';
END
$$;
