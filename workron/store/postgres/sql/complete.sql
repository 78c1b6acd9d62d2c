-- complete: accept the ends of claims that still stand, tell their downstreams, and claim anew.
-- Running -> Succeeded (succeed)
-- Running -> Failed (fail)
-- Running -> Waiting (retry)
-- Running -> Waiting (hold)
-- Running -> Cancelled (cancel)
-- Running -> Failed (expire)
-- One round trip of several statements: what an end frees is seen by a later statement than the one
-- that wrote it. Rows with an answer are one for each end, in order; the others are new claims. A
-- result is given as the text of its JSON.
CREATE OR REPLACE FUNCTION workron.complete(
    _key uuid, _ends jsonb, _outputs bytea[], _claims uuid[]
) RETURNS TABLE (
    answer text, job bigint, claim uuid, attempt integer, failures integer, losses integer,
    fence bigint, namespace text, root text, name text, index integer, item jsonb, spec jsonb, inputs jsonb
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = workron, pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz := workron.now();
    _worker workron.worker := workron.session(_key);
    _taken bigint[];
    _ended bigint[];
BEGIN
    WITH told AS MATERIALIZED (
        SELECT t.*, _outputs[t.number] AS output
        FROM ROWS FROM (jsonb_to_recordset(_ends) AS (
            job bigint, claim uuid, fence bigint, outcome text, reason text, message text,
            exit_code integer, delay double precision, result text)) WITH ORDINALITY AS t(
            job, claim, fence, outcome, reason, message, exit_code, delay, result, number)
        ORDER BY t.job, t.number -- guard: order
    ), taken AS (
        -- In words that only the key of `running` answers to, end by end: whatever statistics say of a
        -- table that is often empty, no plan may hold each of many ends against each of many claims.
        DELETE FROM workron.running r USING told t
        WHERE r.job = ANY (ARRAY[t.job])
          AND uuid_eq(r.claim, t.claim) AND int8eq(r.fence, t.fence) AND int8eq(r.worker, _worker.id) -- guard: claim
        RETURNING t.number, r.job, r.claim, r.pool, r.priority, r.attempt, r.losses, r.fence, r.alone,
                  r.claimed_at, left(t.message, 4096) AS message, t.exit_code, t.delay, t.outcome,
                  CASE WHEN octet_length(t.result) <= 65536 THEN t.result
                       WHEN t.result IS NOT NULL THEN workron.refuse('result', 'at most 65536 bytes')
                       END AS result,
                  CASE WHEN octet_length(t.output) <= 1048576 THEN t.output
                       ELSE workron.refuse('output', 'at most 1048576 bytes')::bytea END AS output,
                  r.failures + (t.outcome <> 'Succeeded')::integer AS failures,
                  CASE WHEN r.mark = 'Cancel' THEN 'Cancelled'
                       WHEN r.mark = 'Expire' THEN 'Failed'
                       WHEN r.mark = 'Hold' AND t.outcome = 'Retry' THEN 'Held'
                       WHEN t.outcome IN ('Succeeded', 'Failed', 'Retry') THEN t.outcome
                       ELSE workron.refuse('outcome', 'Succeeded, Failed or Retry') END AS becomes,
                  CASE WHEN r.mark = 'Cancel' THEN NULL
                       WHEN r.mark = 'Expire' THEN 'DeadlineExceeded'
                       WHEN t.outcome <> 'Succeeded' THEN t.reason END AS reason
    ), ended AS (
        INSERT INTO workron.done (job, state, reason, message, exit_code, finished_at, attempts,
                                  failures, losses, worker)
        SELECT job, becomes, reason, message, exit_code, _now, attempt, failures, losses, _worker.name
        FROM taken WHERE becomes NOT IN ('Retry', 'Held')
    ), retried AS (
        INSERT INTO workron.deferred
            (job, due, reason, pool, priority, attempts, failures, losses, fence, alone)
        SELECT job, _now + make_interval(secs => delay), 'Backoff', pool, priority, attempt, failures,
               losses, fence, alone
        FROM taken WHERE becomes = 'Retry'
    ), held AS (
        INSERT INTO workron.waiting
            (job, remaining, held, wide, priority, attempts, failures, losses, fence, alone)
        SELECT job, 1, true, false, priority, attempt, failures, losses, fence, alone
        FROM taken WHERE becomes = 'Held'
    ), tried AS (
        INSERT INTO workron.attempt
            (job, attempt, claim, outcome, reason, exit_code, worker, started_at, finished_at)
        SELECT job, attempt, claim,
               CASE becomes WHEN 'Held' THEN 'Retried' WHEN 'Retry' THEN 'Retried' ELSE becomes END,
               reason, exit_code, _worker.name, claimed_at, _now
        FROM taken
    ), results AS (
        INSERT INTO workron.result (job, body)
        SELECT job, result FROM taken
        -- The cast refuses what is no JSON, and what no string of it may have.
        WHERE result::jsonb IS NOT NULL AND becomes NOT IN ('Retry', 'Held')
    ), outputs AS (
        INSERT INTO workron.output (job, attempt, chunk, data)
        SELECT job, attempt, -1, output FROM taken WHERE output <> ''
    )
    SELECT array_agg(number), array_agg(job) FILTER (WHERE becomes NOT IN ('Retry', 'Held'))
    INTO _taken, _ended FROM taken;

    RETURN QUERY
    SELECT CASE WHEN t.number = ANY (_taken) THEN 'accepted'
                -- Not EXISTS, for which all attempts that there ever were may be read into a hash.
                WHEN (SELECT true FROM workron.attempt a WHERE a.job = t.job AND a.claim = t.claim
                      AND a.outcome NOT IN ('Lost', 'Released') LIMIT 1) THEN 'already'
                ELSE 'stale' END,
           t.job, NULL::uuid, NULL::integer, NULL::integer, NULL::integer, NULL::bigint, NULL::text,
           NULL::text, NULL::text, NULL::integer, NULL::jsonb, NULL::jsonb, NULL::jsonb
    FROM ROWS FROM (jsonb_to_recordset(_ends) AS (job bigint, claim uuid)) WITH ORDINALITY
         AS t(job, claim, number)
    ORDER BY t.number;

    IF _ended IS NOT NULL THEN
        PERFORM workron.settle_ends(_ended);
    END IF;
    IF cardinality(_claims) > 0 THEN
        RETURN QUERY SELECT NULL::text, t.* FROM workron.take(_worker, _claims) t;
    END IF;
END
$$;
