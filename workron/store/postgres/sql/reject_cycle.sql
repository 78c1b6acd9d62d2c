-- reject_cycle: raise an error if some of these runs wait for themselves; its message shows a cycle
-- and its detail lists their uids.
-- Only runs are searched: an edge that leaves a run starts at its id, and edges inside a workflow
-- were checked before the submission. Only waiting jobs can close a cycle.
CREATE OR REPLACE FUNCTION workron.reject_cycle(_runs bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _cyclic bigint[];
    _start bigint;
    _seen bigint[] := '{}';
    _via bigint[] := '{}';
    _frontier bigint[];
    _predecessors bigint[];
    _at bigint;
    _cycle text;
BEGIN
    IF cardinality(_runs) = 0 THEN
        RETURN;
    END IF;
    WITH RECURSIVE down (start, run) AS (
        SELECT e.upstream, j.run
        FROM workron.edge e
        JOIN workron.waiting w ON w.job = e.downstream
        JOIN workron.job j ON j.id = e.downstream
        WHERE e.upstream = ANY (_runs)
        UNION
        SELECT d.start, j.run
        FROM down d
        JOIN workron.edge e ON e.upstream = d.run
        JOIN workron.waiting w ON w.job = e.downstream
        JOIN workron.job j ON j.id = e.downstream
    )
    SELECT array_agg(DISTINCT start) INTO _cyclic FROM down WHERE run = start;
    IF _cyclic IS NULL THEN
        RETURN;
    END IF;
    _start := _cyclic[1];
    -- Breadth first: `_via` has the predecessor of each run on a shortest path from the start.
    _frontier := ARRAY[_start];
    WHILE _start <> ALL (_seen) LOOP
        SELECT array_agg(run), array_agg(upstream) INTO _frontier, _predecessors FROM (
            SELECT DISTINCT ON (j.run) j.run, e.upstream
            FROM workron.edge e
            JOIN workron.waiting w ON w.job = e.downstream
            JOIN workron.job j ON j.id = e.downstream
            WHERE e.upstream = ANY (_frontier) AND j.run <> ALL (_seen)
            ORDER BY j.run, e.upstream
        ) reached;
        IF _frontier IS NULL THEN
            RETURN; -- A job on the cycle has stopped waiting.
        END IF;
        _seen := _seen || _frontier;
        _via := _via || _predecessors;
    END LOOP;
    _at := _start;
    SELECT name INTO _cycle FROM workron.run WHERE id = _start;
    LOOP
        _at := _via[array_position(_seen, _at)];
        SELECT name || ' -> ' || _cycle INTO _cycle FROM workron.run WHERE id = _at;
        EXIT WHEN _at = _start;
    END LOOP;
    RAISE EXCEPTION 'jobs wait for each other: %; remove one of these dependencies', _cycle
        USING ERRCODE = 'WK003',
              DETAIL = (SELECT string_agg(uid::text, ' ') FROM workron.run WHERE id = ANY (_cyclic));
END
$$;
