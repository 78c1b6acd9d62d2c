-- requeue: end running claims without an end of their job; the caller has locked their rows.
-- Running -> Queued (release)
-- Running -> Queued (reap)
-- Running -> Waiting (suspend)
-- Running -> Cancelled (cancel)
-- Running -> Failed (expire)
-- Running -> Failed (fail)
-- `_losses` is charged to each job, `_alone` makes each run alone next, and `_proven` says that the
-- worker certainly does not run them any more. `destination` is ready or waiting for a job that goes
-- on, else the way in which it ended.
CREATE OR REPLACE FUNCTION workron.requeue(
    _jobs bigint[], _outcome text, _losses integer, _alone boolean, _proven boolean
) RETURNS TABLE (job bigint, destination text)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz := workron.now();
    _ended bigint[];
    _moved jsonb;
BEGIN
    WITH taken AS (
        DELETE FROM workron.running r USING workron.job j
        WHERE r.job = ANY (_jobs) AND j.id = r.job
        RETURNING r.*, j.max_losses, j.needs_proof AND NOT _proven AS awaits_proof
    ), classified AS (
        SELECT t.*, t.losses + _losses AS all_losses, t.alone OR _alone AS runs_alone, w.name AS worker_name,
            CASE WHEN t.signal = 'Cancel' THEN 'Cancelled'
                 WHEN t.signal = 'Expire' THEN 'Expired'
                 WHEN t.losses + _losses > t.max_losses THEN 'WorkerLost'
                 WHEN t.signal = 'Suspend' OR t.awaits_proof THEN 'waiting'
                 ELSE 'ready' END AS destination
        FROM taken t LEFT JOIN workron.worker w ON w.id = t.worker
    ), queued AS (
        INSERT INTO workron.ready (job, pool, priority, attempts, failures, losses, fence, alone)
        SELECT job, pool, priority, attempt, failures, all_losses, fence, runs_alone
        FROM classified WHERE destination = 'ready'
    ), suspended AS (
        INSERT INTO workron.waiting
            (job, remaining, suspended, awaits_proof, wide, priority, attempts, failures, losses, fence, alone)
        SELECT job, (coalesce(signal, '') = 'Suspend')::integer + awaits_proof::integer,
               coalesce(signal, '') = 'Suspend', awaits_proof, false, priority, attempt, failures, all_losses,
               fence, runs_alone
        FROM classified WHERE destination = 'waiting'
    ), awaits_proof AS (
        INSERT INTO workron.awaiting_proof (job, worker, pool, name)
        SELECT job, worker, pool, coalesce(worker_name, '') FROM classified WHERE destination = 'waiting' AND awaits_proof
    ), ended AS (
        INSERT INTO workron.done
            (job, state, reason, message, finished_at, attempts, failures, losses, worker)
        SELECT job, CASE destination WHEN 'Cancelled' THEN 'Cancelled' ELSE 'Failed' END,
               CASE destination WHEN 'Expired' THEN 'DeadlineExceeded' WHEN 'WorkerLost' THEN 'WorkerLost' END,
               CASE destination WHEN 'WorkerLost' THEN format('%s workers were lost while they ran it', all_losses) END,
               _now, attempt, failures, all_losses, worker_name
        FROM classified WHERE destination NOT IN ('ready', 'waiting')
    ), attempts AS (
        INSERT INTO workron.attempt
            (job, attempt, claim, outcome, reason, worker, started_at, finished_at)
        SELECT job, attempt, claim, CASE destination WHEN 'Cancelled' THEN 'Cancelled' ELSE _outcome END,
               CASE destination WHEN 'Expired' THEN 'DeadlineExceeded' WHEN 'WorkerLost' THEN 'WorkerLost' END,
               worker_name, claimed_at, _now
        FROM classified
    )
    SELECT jsonb_agg(jsonb_build_object('job', job, 'destination', destination)),
           array_agg(job) FILTER (WHERE destination NOT IN ('ready', 'waiting'))
    INTO _moved, _ended FROM classified;
    IF _ended IS NOT NULL THEN
        PERFORM workron.propagate_ends(_ended);
    END IF;
    RETURN QUERY SELECT m.job, m.destination FROM jsonb_to_recordset(_moved) AS m(job bigint, destination text);
END
$$;
