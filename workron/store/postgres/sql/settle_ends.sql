-- settle_ends: tell the direct downstreams and the group of each ended job.
-- Waiting -> Queued (ready)
-- A statement has one snapshot: decrementing in the statement that ends a job would miss what another
-- end did meanwhile. So the rows are locked first, in id order, and changed by later statements: those
-- that were waiting for these ends alone, and simply go, are moved without being counted down.
CREATE OR REPLACE FUNCTION workron.settle_ends(_ended bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _now timestamptz := workron.now();
    _jobs bigint[];
    _counts integer[];
    _verdicts smallint[];
    _narrow bigint[];
    _wide bigint[];
    _locked bigint[];
    _queued integer;
    _first bigint;
    _priority integer;
    _pools integer[];
    _zero bigint[];
BEGIN
    -- An end needs no deadline; one that expire holds just now is dropped by it.
    IF EXISTS (SELECT 1 FROM workron.deadline WHERE job = ANY (_ended)) THEN
        DELETE FROM workron.deadline WHERE job IN (
            SELECT job FROM workron.deadline WHERE job = ANY (_ended)
            FOR UPDATE SKIP LOCKED -- guard: deadline
        );
    END IF;
    SELECT array_agg(told.job), array_agg(told.count), array_agg(told.verdict),
           array_agg(told.job) FILTER (WHERE NOT w.wide), array_agg(told.job) FILTER (WHERE w.wide)
    INTO _jobs, _counts, _verdicts, _narrow, _wide
    FROM (
        SELECT e.job, count(*)::integer AS count,
               max(workron.weigh(e.condition, d.state, d.reason)) AS verdict
        FROM unnest(_ended) AS ended(job)
        JOIN workron.done d ON d.job = ended.job
        -- OFFSET, like the arrays of one further down, has each look for its own row: a plan that is
        -- free to would walk all edges, or all that waits, where statistics saw one parent with
        -- all the children, or few waiting.
        CROSS JOIN LATERAL (
            SELECT child AS job, condition FROM workron.edge WHERE parent = ended.job
            UNION ALL
            SELECT group_id, group_condition FROM workron.job WHERE id = ended.job AND group_id IS NOT NULL
            OFFSET 0
        ) e
        GROUP BY e.job
    ) told CROSS JOIN LATERAL (SELECT wide FROM workron.waiting WHERE job = told.job OFFSET 0) w;

    IF _narrow IS NOT NULL THEN
        PERFORM 1 FROM workron.waiting WHERE job = ANY (_narrow) ORDER BY job FOR UPDATE; -- guard: settle
        WITH goes AS (
            DELETE FROM workron.waiting w
            USING unnest(_jobs, _counts, _verdicts) AS t(job, count, verdict),
                  workron.job j, workron.run r
            WHERE w.job = ANY (ARRAY[t.job]) AND NOT w.wide AND w.remaining = t.count
              AND w.verdict = 0 AND t.verdict = 0
              AND j.id = ANY (ARRAY[w.job]) AND coalesce(j.start_after <= _now, true)
              AND r.id = ANY (ARRAY[j.run]) AND NOT r.cancelled
            RETURNING w.job, j.pool, w.priority, w.attempts, w.failures, w.losses, w.fence, w.alone
        ), queued AS (
            INSERT INTO workron.ready (job, pool, priority, attempts, failures, losses, fence, alone)
            SELECT job, pool, priority, attempts, failures, losses, fence, alone FROM goes
            RETURNING job, pool, priority
        )
        SELECT count(*), min(job), max(priority), array_agg(DISTINCT pool)
        INTO _queued, _first, _priority, _pools FROM queued;
        IF _queued > 0 THEN
            -- Who told of an end may take at once what it has freed.
            PERFORM workron.pull_mark(pool, _priority, _first) FROM unnest(_pools) AS freed(pool);
        END IF;
        IF _queued < cardinality(_narrow) THEN
            WITH counted AS (
                UPDATE workron.waiting w
                SET remaining = w.remaining - t.count, verdict = greatest(w.verdict, t.verdict)
                FROM unnest(_jobs, _counts, _verdicts) AS t(job, count, verdict)
                WHERE w.job = ANY (ARRAY[t.job]) AND NOT w.wide
                RETURNING w.job, w.remaining
            )
            SELECT array_agg(job) INTO _zero FROM counted WHERE remaining = 0;
        END IF;
    END IF;

    IF _wide IS NOT NULL THEN
        _locked := workron.sum_arrivals(_wide);
        WITH counted AS (
            UPDATE workron.waiting w
            SET remaining = w.remaining - t.count, verdict = greatest(w.verdict, t.verdict)
            FROM unnest(_jobs, _counts, _verdicts) AS t(job, count, verdict)
            WHERE w.job = ANY (ARRAY[t.job]) AND w.job = ANY (_locked)
            RETURNING w.job, w.remaining
        )
        SELECT _zero || array_agg(job) INTO _zero FROM counted WHERE remaining = 0;
        IF cardinality(_locked) < cardinality(_wide) THEN
            INSERT INTO workron.arrival (job, count, verdict)
            SELECT t.job, t.count, t.verdict
            FROM unnest(_jobs, _counts, _verdicts) AS t(job, count, verdict)
            WHERE t.job = ANY (_wide) AND t.job <> ALL (_locked);
        END IF;
    END IF;
    IF _zero IS NOT NULL THEN
        PERFORM workron.decide(_zero);
    END IF;
END
$$;
