-- refuse_cycle: raise when one of these new roots would wait for itself; the message is the cycle.
-- Only roots are walked: the edges inside a workflow were checked before it came here.
CREATE OR REPLACE FUNCTION workron.refuse_cycle(_roots bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _start bigint;
    _cycle text;
BEGIN
    WITH RECURSIVE down (start, job) AS (
        SELECT e.parent, e.child FROM workron.edge e
        WHERE e.parent = ANY (_roots)
          AND EXISTS (SELECT 1 FROM workron.edge up WHERE up.child = e.parent)
          AND EXISTS (SELECT 1 FROM workron.root r WHERE r.id = e.child)
        UNION
        SELECT d.start, e.child FROM down d JOIN workron.edge e ON e.parent = d.job
    )
    SELECT start INTO _start FROM down WHERE job = start LIMIT 1;
    IF _start IS NULL THEN
        RETURN;
    END IF;
    -- Breadth first, and stopped at the first: a shortest way round.
    WITH RECURSIVE back (job) AS (
        SELECT _start UNION SELECT e.parent FROM back b JOIN workron.edge e ON e.child = b.job
    ), walk (job, path) AS (
        SELECT _start, ARRAY[_start]
        UNION ALL
        SELECT e.child, w.path || e.child
        FROM walk w JOIN workron.edge e ON e.parent = w.job JOIN back b ON b.job = e.child
        WHERE (e.child = _start OR e.child <> ALL (w.path)) AND (w.path[2:] = '{}' OR w.job <> _start)
    ), found AS (
        SELECT path FROM walk WHERE job = _start AND cardinality(path) > 1 LIMIT 1
    )
    SELECT string_agg(r.name, ' -> ' ORDER BY p.number) INTO _cycle
    FROM found, unnest(found.path) WITH ORDINALITY AS p(id, number)
    JOIN workron.root r ON r.id = p.id;
    RAISE EXCEPTION 'jobs wait for each other: %', _cycle USING ERRCODE = 'WK003';
END
$$;
