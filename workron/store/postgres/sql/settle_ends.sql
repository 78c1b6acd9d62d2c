-- settle_ends: tell the direct downstreams and the group of each ended job.
-- A statement has one snapshot: decrementing in the statement that ends a job would miss what another
-- end did meanwhile. So the rows are locked first, in id order, and changed by a later statement.
CREATE OR REPLACE FUNCTION workron.settle_ends(_ended bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _jobs bigint[];
    _counts integer[];
    _verdicts smallint[];
    _wide bigint[];
BEGIN
    -- An end needs no deadline; one that expire holds just now is dropped by it.
    DELETE FROM workron.deadline WHERE job IN (
        SELECT job FROM workron.deadline WHERE job = ANY (_ended)
        FOR UPDATE SKIP LOCKED -- guard: deadline
    );
    SELECT array_agg(told.job ORDER BY told.job), array_agg(told.count ORDER BY told.job),
           array_agg(told.verdict ORDER BY told.job)
    INTO _jobs, _counts, _verdicts
    FROM (
        SELECT job, count(*)::integer AS count, max(verdict) AS verdict FROM (
            SELECT e.child AS job, workron.weigh(e.condition, d.state, d.reason) AS verdict
            FROM unnest(_ended) AS ended(job)
            JOIN workron.done d ON d.job = ended.job
            -- OFFSET has each end look for its own edges: where statistics know of one parent with
            -- all the children, a plan that is free to would walk all edges for every few ends.
            CROSS JOIN LATERAL (SELECT * FROM workron.edge WHERE parent = ended.job OFFSET 0) e
            UNION ALL
            SELECT j.member_of, workron.weigh(j.bearing, d.state, d.reason)
            FROM unnest(_ended) AS ended(job)
            JOIN workron.done d ON d.job = ended.job
            JOIN workron.job j ON j.id = ended.job
            WHERE j.member_of IS NOT NULL
        ) each_end GROUP BY job
    ) told;
    IF _jobs IS NULL THEN
        RETURN;
    END IF;

    PERFORM 1 FROM workron.waiting WHERE job = ANY (_jobs) AND NOT wide ORDER BY job FOR UPDATE; -- guard: settle
    UPDATE workron.waiting w
    SET remaining = w.remaining - t.count, verdict = greatest(w.verdict, t.verdict)
    FROM unnest(_jobs, _counts, _verdicts) AS t(job, count, verdict)
    WHERE w.job = t.job AND NOT w.wide;

    WITH appended AS (
        INSERT INTO workron.arrival (job, count, verdict)
        SELECT t.job, t.count, t.verdict
        FROM unnest(_jobs, _counts, _verdicts) AS t(job, count, verdict)
        JOIN workron.waiting w ON w.job = t.job
        WHERE w.wide
        RETURNING job
    )
    SELECT array_agg(job) INTO _wide FROM appended;
    IF _wide IS NOT NULL THEN
        PERFORM workron.sum_arrivals(_wide);
    END IF;
    PERFORM workron.decide(_jobs);
END
$$;
