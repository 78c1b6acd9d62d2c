-- complete: accept the ends of claims that still stand, tell their downstreams, and claim anew.
-- Running -> Succeeded (succeed)
-- Running -> Failed (fail)
-- Running -> Waiting (retry)
-- Running -> Waiting (suspend)
-- Running -> Cancelled (cancel)
-- Running -> Failed (expire)
-- One round trip of several statements: what an end frees is seen by a later statement than the one
-- that wrote it. What few ends have, a result or another try, is in statements of its own, for one
-- that changes nothing costs as much as one that does. The ends stand in lists beside each other; a
-- result is given as the text of its JSON; a list that is not given is of nothing. Rows with an answer
-- are one for each end, in order, or none where all are accepted; the others are new claims.
CREATE OR REPLACE FUNCTION workron.complete(
    _key uuid, _jobs bigint[], _ends uuid[], _fences bigint[], _outcomes text[], _reasons text[],
    _messages text[], _exit_codes integer[], _delays double precision[], _results text[],
    _outputs bytea[], _claims uuid[]
) RETURNS TABLE (
    answer text, job bigint, claim uuid, attempt integer, failures integer, losses integer,
    fence bigint, namespace text, run text, name text, index integer, item jsonb, spec jsonb, inputs jsonb
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = workron, pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz := workron.now();
    _worker workron.worker := workron.session(_key);
    _taken integer[];
    _attempts integer[];
    _ended bigint[];
    _retried integer[];
    _again workron.running[];
    _largest_result integer;
    _largest_output integer;
BEGIN
    WITH told AS MATERIALIZED (
        SELECT t.number, _jobs[t.number] AS job, _ends[t.number] AS claim, _fences[t.number] AS fence,
               _outcomes[t.number] AS outcome
        FROM generate_subscripts(_jobs, 1) AS t(number)
        ORDER BY job, number -- guard: order
    ), taken AS (
        -- In words that only the key of `running` answers to, end by end: whatever statistics say of a
        -- table that is often empty, no plan may hold each of many ends against each of many claims.
        DELETE FROM workron.running r USING told t
        WHERE r.job = ANY (ARRAY[t.job])
          AND uuid_eq(r.claim, t.claim) AND int8eq(r.fence, t.fence) AND int8eq(r.worker, _worker.id) -- guard: claim
        RETURNING t.number, r.job, r.claim, r.attempt, r.losses, r.claimed_at,
                  r.failures + (t.outcome <> 'Succeeded')::integer AS failures,
                  CASE WHEN t.outcome = 'Retry' THEN r END AS again,
                  CASE WHEN r.mark = 'Cancel' THEN 'Cancelled'
                       WHEN r.mark = 'Expire' THEN 'Failed'
                       WHEN t.outcome IN ('Succeeded', 'Failed') THEN t.outcome
                       WHEN t.outcome = 'Retry' THEN 'Retried'
                       ELSE workron.refuse('outcome', 'Succeeded, Failed or Retry') END AS becomes,
                  CASE WHEN r.mark = 'Cancel' THEN NULL
                       WHEN r.mark = 'Expire' THEN 'DeadlineExceeded'
                       WHEN t.outcome <> 'Succeeded' THEN _reasons[t.number] END AS reason
    ), ended AS (
        INSERT INTO workron.done (job, state, reason, message, exit_code, finished_at, attempts,
                                  failures, losses, worker)
        SELECT job, becomes, reason, left(_messages[number], 4096), _exit_codes[number], _now, attempt,
               failures, losses, _worker.name
        FROM taken WHERE becomes <> 'Retried'
    ), tried AS (
        INSERT INTO workron.attempt
            (job, attempt, claim, outcome, reason, exit_code, worker, started_at, finished_at)
        SELECT job, attempt, claim, becomes, reason, _exit_codes[number], _worker.name, claimed_at, _now
        FROM taken
    )
    SELECT array_agg(number), array_agg(attempt),
           array_agg(job) FILTER (WHERE becomes <> 'Retried'),
           array_agg(number) FILTER (WHERE becomes = 'Retried'),
           array_agg(again) FILTER (WHERE becomes = 'Retried'),
           max(octet_length(_results[number])), max(octet_length(_outputs[number]))
    INTO _taken, _attempts, _ended, _retried, _again, _largest_result, _largest_output FROM taken;

    IF _again IS NOT NULL THEN
        INSERT INTO workron.deferred
            (job, due, reason, pool, priority, attempts, failures, losses, fence, alone)
        SELECT job, _now + make_interval(secs => _delays[_retried[ordinality]]), 'Backoff', pool,
               priority, attempt, failures + 1, losses, fence, alone
        FROM unnest(_again) WITH ORDINALITY WHERE mark IS NULL;
        INSERT INTO workron.waiting
            (job, remaining, held, wide, priority, attempts, failures, losses, fence, alone)
        SELECT job, 1, true, false, priority, attempt, failures + 1, losses, fence, alone
        FROM unnest(_again) WHERE mark = 'Hold';
    END IF;
    IF _largest_result > 65536 THEN
        PERFORM workron.refuse('result', 'at most 65536 bytes');
    ELSIF _largest_result IS NOT NULL THEN
        INSERT INTO workron.result (job, body)
        SELECT _jobs[t.number], _results[t.number] FROM unnest(_taken) AS t(number)
        -- The cast refuses what is no JSON, and what no string of it may have.
        WHERE _results[t.number]::jsonb IS NOT NULL AND _jobs[t.number] = ANY (_ended);
    END IF;
    IF _largest_output > 1048576 THEN
        PERFORM workron.refuse('output', 'at most 1048576 bytes');
    ELSIF _largest_output > 0 THEN
        INSERT INTO workron.output (job, attempt, chunk, data)
        SELECT _jobs[t.number], t.attempt, -1, _outputs[t.number]
        FROM unnest(_taken, _attempts) AS t(number, attempt)
        WHERE octet_length(_outputs[t.number]) > 0;
    END IF;

    IF cardinality(_taken) IS DISTINCT FROM cardinality(_jobs) THEN
        RETURN QUERY
        SELECT CASE WHEN t.number = ANY (_taken) THEN 'accepted'
                    -- Not EXISTS, for which all attempts that there ever were may be read into a hash.
                    WHEN (SELECT true FROM workron.attempt a
                          WHERE a.job = _jobs[t.number] AND a.claim = _ends[t.number]
                          AND a.outcome NOT IN ('Lost', 'Released') LIMIT 1) THEN 'already'
                    ELSE 'stale' END,
               _jobs[t.number], NULL::uuid, NULL::integer, NULL::integer, NULL::integer, NULL::bigint,
               NULL::text, NULL::text, NULL::text, NULL::integer, NULL::jsonb, NULL::jsonb, NULL::jsonb
        FROM generate_subscripts(_jobs, 1) AS t(number);
    END IF;

    IF _ended IS NOT NULL THEN
        PERFORM workron.settle_ends(_ended);
    END IF;
    IF workron.take(_worker, _claims) THEN
        RETURN QUERY SELECT NULL::text, c.* FROM workron.claimed(_worker.id, _claims) c;
    END IF;
END
$$;
