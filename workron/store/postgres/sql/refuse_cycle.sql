-- refuse_cycle: raise when some of these runs would wait for themselves; the message is one cycle, the
-- detail has the uids of all of them.
-- Only runs are walked: an edge that leaves a run starts at its own id, and the edges inside a
-- workflow were checked before it came here. Only what still waits can close a cycle.
CREATE OR REPLACE FUNCTION workron.refuse_cycle(_runs bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _round bigint[];
    _start bigint;
    _seen bigint[] := '{}';
    _via bigint[] := '{}';
    _front bigint[];
    _before bigint[];
    _at bigint;
    _cycle text;
BEGIN
    IF cardinality(_runs) = 0 THEN
        RETURN;
    END IF;
    WITH RECURSIVE down (start, run) AS (
        SELECT e.parent, j.run
        FROM workron.edge e
        JOIN workron.waiting w ON w.job = e.child
        JOIN workron.job j ON j.id = e.child
        WHERE e.parent = ANY (_runs)
        UNION
        SELECT d.start, j.run
        FROM down d
        JOIN workron.edge e ON e.parent = d.run
        JOIN workron.waiting w ON w.job = e.child
        JOIN workron.job j ON j.id = e.child
    )
    SELECT array_agg(DISTINCT start) INTO _round FROM down WHERE run = start;
    IF _round IS NULL THEN
        RETURN;
    END IF;
    _start := _round[1];
    -- Breadth first, each run once: `_via` has the one before it on a shortest way from the start.
    _front := ARRAY[_start];
    WHILE _start <> ALL (_seen) LOOP
        SELECT array_agg(run), array_agg(parent) INTO _front, _before FROM (
            SELECT DISTINCT ON (j.run) j.run, e.parent
            FROM workron.edge e
            JOIN workron.waiting w ON w.job = e.child
            JOIN workron.job j ON j.id = e.child
            WHERE e.parent = ANY (_front) AND j.run <> ALL (_seen)
            ORDER BY j.run, e.parent
        ) reached;
        IF _front IS NULL THEN
            RETURN; -- What waited there has gone on meanwhile.
        END IF;
        _seen := _seen || _front;
        _via := _via || _before;
    END LOOP;
    _at := _start;
    SELECT name INTO _cycle FROM workron.run WHERE id = _start;
    LOOP
        _at := _via[array_position(_seen, _at)];
        SELECT name || ' -> ' || _cycle INTO _cycle FROM workron.run WHERE id = _at;
        EXIT WHEN _at = _start;
    END LOOP;
    RAISE EXCEPTION 'jobs wait for each other: %; take one of these waits out', _cycle
        USING ERRCODE = 'WK003',
              DETAIL = (SELECT string_agg(uid::text, ' ') FROM workron.run WHERE id = ANY (_round));
END
$$;
