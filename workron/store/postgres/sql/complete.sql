-- complete: accept reports on valid claims, propagate their ends, and claim new jobs, in one round
-- trip.
-- Running -> Succeeded (succeed)
-- Running -> Failed (fail)
-- Running -> Waiting (retry)
-- Running -> Waiting (suspend)
-- Running -> Cancelled (cancel)
-- Running -> Failed (expire)
-- Each step is a statement of its own: a statement has one snapshot, and what an end makes ready must
-- be visible to the claim. Results and retries, which few reports have, are separate statements that
-- are skipped: a statement that changes nothing costs as much as one that does. Reports are arrays
-- with one element per report; a result is JSON text; a null array means no values. The first rows
-- have the answers, one per report in order, or are left out if all are accepted; the other rows are
-- the new claims.
CREATE OR REPLACE FUNCTION workron.complete(
    _key uuid, _jobs bigint[], _ends uuid[], _fences bigint[], _outcomes text[], _reasons text[],
    _messages text[], _exit_codes integer[], _delays double precision[], _results text[],
    _outputs bytea[], _claims uuid[]
) RETURNS TABLE (
    answer text, job bigint, claim uuid, attempt integer, failures integer, losses integer,
    fence bigint, namespace text, run text, name text, index integer, item jsonb, spec jsonb, inputs jsonb,
    run_state text
)
LANGUAGE plpgsql SECURITY DEFINER
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz := workron.now();
    _worker workron.worker := workron.lock_session(_key);
    _taken integer[];
    _attempts integer[];
    _ended bigint[];
    _retried integer[];
    _retried_rows workron.running[];
    _largest_result integer;
    _largest_output integer;
BEGIN
    WITH report AS MATERIALIZED (
        SELECT t.number, _jobs[t.number] AS job, _ends[t.number] AS claim, _fences[t.number] AS fence,
               _outcomes[t.number] AS outcome
        FROM generate_subscripts(_jobs, 1) AS t(number)
        ORDER BY job, number -- guard: order
    ), taken AS (
        -- These expressions allow only a lookup in `running` by its key for each report. The statistics
        -- of a table that is often empty would suggest comparing all reports with all claims.
        DELETE FROM workron.running r USING report t
        WHERE r.job = ANY (ARRAY[t.job])
          AND uuid_eq(r.claim, t.claim) AND int8eq(r.fence, t.fence) AND int8eq(r.worker, _worker.id) -- guard: claim
        RETURNING t.number, r.job, r.claim, r.attempt, r.losses, r.claimed_at,
                  r.failures + (t.outcome <> 'Succeeded')::integer AS failures,
                  CASE WHEN t.outcome = 'Retry' THEN r END AS retried_row,
                  CASE WHEN r.signal = 'Cancel' THEN 'Cancelled'
                       WHEN r.signal = 'Expire' THEN 'Failed'
                       WHEN t.outcome IN ('Succeeded', 'Failed') THEN t.outcome
                       WHEN t.outcome = 'Retry' THEN 'Retried'
                       ELSE workron.reject_report('outcome must be Succeeded, Failed or Retry') END AS new_state,
                  CASE WHEN r.signal = 'Cancel' THEN NULL
                       WHEN r.signal = 'Expire' THEN 'DeadlineExceeded'
                       WHEN t.outcome <> 'Succeeded' THEN _reasons[t.number] END AS reason
    ), ended AS (
        INSERT INTO workron.done (job, state, reason, message, exit_code, finished_at, attempts,
                                  failures, losses, worker)
        SELECT job, new_state, reason, left(_messages[number], 4096), _exit_codes[number], _now, attempt,
               failures, losses, _worker.name
        FROM taken WHERE new_state <> 'Retried'
    ), attempts AS (
        INSERT INTO workron.attempt
            (job, attempt, claim, outcome, reason, exit_code, worker, started_at, finished_at)
        SELECT job, attempt, claim, new_state, reason, _exit_codes[number], _worker.name, claimed_at, _now
        FROM taken
    )
    SELECT array_agg(number), array_agg(attempt),
           array_agg(job) FILTER (WHERE new_state <> 'Retried'),
           array_agg(number) FILTER (WHERE new_state = 'Retried'),
           array_agg(retried_row) FILTER (WHERE new_state = 'Retried'),
           max(octet_length(_results[number])), max(octet_length(_outputs[number]))
    INTO _taken, _attempts, _ended, _retried, _retried_rows, _largest_result, _largest_output FROM taken;

    IF _retried_rows IS NOT NULL THEN
        INSERT INTO workron.deferred
            (job, due, reason, pool, priority, attempts, failures, losses, fence, alone)
        SELECT job, _now + make_interval(secs => _delays[_retried[ordinality]]), 'Backoff', pool,
               priority, attempt, failures + 1, losses, fence, alone
        FROM unnest(_retried_rows) WITH ORDINALITY WHERE signal IS NULL;
        INSERT INTO workron.waiting
            (job, remaining, suspended, wide, priority, attempts, failures, losses, fence, alone)
        SELECT job, 1, true, false, priority, attempt, failures + 1, losses, fence, alone
        FROM unnest(_retried_rows) WHERE signal = 'Suspend';
    END IF;
    IF _largest_result > 65536 THEN
        PERFORM workron.reject_report('result has more than 65536 bytes');
    ELSIF _largest_result IS NOT NULL THEN
        INSERT INTO workron.result (job, body)
        SELECT _jobs[t.number], _results[t.number] FROM unnest(_taken) AS t(number)
        -- The cast raises an error for text that is not JSON.
        WHERE _results[t.number]::jsonb IS NOT NULL AND _jobs[t.number] = ANY (_ended);
    END IF;
    IF _largest_output > 1048576 THEN
        PERFORM workron.reject_report('output has more than 1048576 bytes');
    ELSIF _largest_output > 0 THEN
        INSERT INTO workron.output (job, attempt, chunk, data)
        SELECT _jobs[t.number], t.attempt, -1, _outputs[t.number]
        FROM unnest(_taken, _attempts) AS t(number, attempt)
        WHERE octet_length(_outputs[t.number]) > 0;
    END IF;

    IF cardinality(_taken) IS DISTINCT FROM cardinality(_jobs) THEN
        RETURN QUERY
        SELECT CASE WHEN t.number = ANY (_taken) THEN 'accepted'
                    -- Not EXISTS, for which the planner may read all attempts into a hash table.
                    WHEN (SELECT true FROM workron.attempt a
                          WHERE a.job = _jobs[t.number] AND a.claim = _ends[t.number]
                          AND a.outcome NOT IN ('Lost', 'Released') LIMIT 1) THEN 'already'
                    ELSE 'stale' END,
               _jobs[t.number], NULL::uuid, NULL::integer, NULL::integer, NULL::integer, NULL::bigint,
               NULL::text, NULL::text, NULL::text, NULL::integer, NULL::jsonb, NULL::jsonb, NULL::jsonb, NULL::text
        FROM generate_subscripts(_jobs, 1) AS t(number);
    END IF;

    IF _ended IS NOT NULL THEN
        PERFORM workron.propagate_ends(_ended);
    END IF;
    IF workron.claim_ready(_worker, _claims, NULL) THEN
        RETURN QUERY SELECT NULL::text, c.* FROM workron.claimed_jobs(_worker.id, _claims) c;
    END IF;
END
$$;
