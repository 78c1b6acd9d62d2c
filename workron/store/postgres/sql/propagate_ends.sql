-- propagate_ends: propagate ended jobs to their direct downstreams and groups.
-- Waiting -> Queued (ready)
-- The waiting rows are locked in order of id and changed by later statements: a statement has one
-- snapshot, and counting down in the statement that ends a job would miss concurrent ends. Jobs that
-- waited only for these ends become ready without being counted down first.
CREATE OR REPLACE FUNCTION workron.propagate_ends(_ended bigint[]) RETURNS void
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
    _zero bigint[];
BEGIN
    -- An ended job needs no deadline. If `expire` has locked it, `expire` deletes it.
    IF EXISTS (SELECT 1 FROM workron.deadline WHERE job = ANY (_ended)) THEN
        DELETE FROM workron.deadline WHERE job IN (
            SELECT job FROM workron.deadline WHERE job = ANY (_ended)
            FOR UPDATE SKIP LOCKED -- guard: deadline
        );
    END IF;
    SELECT array_agg(updates.job), array_agg(updates.count), array_agg(updates.verdict),
           array_agg(updates.job) FILTER (WHERE NOT w.wide), array_agg(updates.job) FILTER (WHERE w.wide)
    INTO _jobs, _counts, _verdicts, _narrow, _wide
    FROM (
        SELECT e.job, count(*)::integer AS count,
               max(workron.evaluate(e.condition, d.state, d.reason)) AS verdict
        FROM unnest(_ended) AS ended(job)
        JOIN workron.done d ON d.job = ended.job
        -- OFFSET 0, like `= ANY (ARRAY[...])` below, allows only lookups by key for each row: a free
        -- planner would scan all edges or all waiting jobs after statistics of an unusual moment.
        CROSS JOIN LATERAL (
            SELECT downstream AS job, condition FROM workron.edge WHERE upstream = ended.job
            UNION ALL
            SELECT group_id, group_condition FROM workron.job WHERE id = ended.job AND group_id IS NOT NULL
            OFFSET 0
        ) e
        GROUP BY e.job
    ) updates CROSS JOIN LATERAL (SELECT wide FROM workron.waiting WHERE job = updates.job OFFSET 0) w;

    IF 5 = ANY (_verdicts) THEN
        PERFORM workron.record_failed_runs(_jobs, _verdicts);
    END IF;

    IF _narrow IS NOT NULL THEN
        PERFORM 1 FROM workron.waiting WHERE job = ANY (_narrow) ORDER BY job FOR UPDATE; -- guard: propagate
        WITH unblocked AS (
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
            SELECT job, pool, priority, attempts, failures, losses, fence, alone FROM unblocked
            RETURNING job
        )
        SELECT count(*) INTO _queued FROM queued;
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
        _locked := workron.apply_pending_ends(_wide);
        WITH counted AS (
            UPDATE workron.waiting w
            SET remaining = w.remaining - t.count, verdict = greatest(w.verdict, t.verdict)
            FROM unnest(_jobs, _counts, _verdicts) AS t(job, count, verdict)
            WHERE w.job = ANY (ARRAY[t.job]) AND w.job = ANY (_locked)
            RETURNING w.job, w.remaining
        )
        SELECT _zero || array_agg(job) INTO _zero FROM counted WHERE remaining = 0;
        IF cardinality(_locked) < cardinality(_wide) THEN
            INSERT INTO workron.pending_end (job, count, verdict)
            SELECT t.job, t.count, t.verdict
            FROM unnest(_jobs, _counts, _verdicts) AS t(job, count, verdict)
            WHERE t.job = ANY (_wide) AND t.job <> ALL (_locked);
        END IF;
    END IF;
    IF _zero IS NOT NULL THEN
        PERFORM workron.resolve_waiting(_zero);
    END IF;
END
$$;
