-- give_back: take running jobs off a worker that did not end them; the caller has locked their rows.
-- Running -> Queued (release)
-- Running -> Queued (reap)
-- Running -> Waiting (suspend)
-- Running -> Cancelled (cancel)
-- Running -> Failed (expire)
-- Running -> Failed (fail)
-- `_losses` is what each of them is charged; `_apart` has each tried alone next; `_proven` says that
-- the worker cannot run them any more.
CREATE OR REPLACE FUNCTION workron.give_back(
    _jobs bigint[], _outcome text, _losses integer, _apart boolean, _proven boolean
) RETURNS TABLE (job bigint, place text)
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
        RETURNING r.*, j.max_losses, j.needs_proof AND NOT _proven AS unproven
    ), judged AS (
        SELECT t.*, t.losses + _losses AS all_losses, t.alone OR _apart AS apart, w.name AS worker_name,
            CASE WHEN t.mark = 'Cancel' THEN 'Cancelled'
                 WHEN t.mark = 'Expire' THEN 'Expired'
                 WHEN t.losses + _losses > t.max_losses THEN 'WorkerLost'
                 WHEN t.mark = 'Hold' OR t.unproven THEN 'waiting'
                 ELSE 'ready' END AS place
        FROM taken t LEFT JOIN workron.worker w ON w.id = t.worker
    ), queued AS (
        INSERT INTO workron.ready (job, pool, priority, attempts, failures, losses, fence, alone)
        SELECT job, pool, priority, attempt, failures, all_losses, fence, apart
        FROM judged WHERE place = 'ready'
    ), held AS (
        INSERT INTO workron.waiting
            (job, remaining, held, unproven, wide, priority, attempts, failures, losses, fence, alone)
        SELECT job, (coalesce(mark, '') = 'Hold')::integer + unproven::integer,
               coalesce(mark, '') = 'Hold', unproven, false, priority, attempt, failures, all_losses,
               fence, apart
        FROM judged WHERE place = 'waiting'
    ), unproven AS (
        INSERT INTO workron.missing (job, worker, pool, name)
        SELECT job, worker, pool, coalesce(worker_name, '') FROM judged WHERE place = 'waiting' AND unproven
    ), ended AS (
        INSERT INTO workron.done
            (job, state, reason, message, finished_at, attempts, failures, losses, worker)
        SELECT job, CASE place WHEN 'Cancelled' THEN 'Cancelled' ELSE 'Failed' END,
               CASE place WHEN 'Expired' THEN 'DeadlineExceeded' WHEN 'WorkerLost' THEN 'WorkerLost' END,
               CASE place WHEN 'WorkerLost' THEN format('%s workers vanished while they ran it', all_losses) END,
               _now, attempt, failures, all_losses, worker_name
        FROM judged WHERE place NOT IN ('ready', 'waiting')
    ), tried AS (
        INSERT INTO workron.attempt
            (job, attempt, claim, outcome, reason, worker, started_at, finished_at)
        SELECT job, attempt, claim, CASE place WHEN 'Cancelled' THEN 'Cancelled' ELSE _outcome END,
               CASE place WHEN 'Expired' THEN 'DeadlineExceeded' WHEN 'WorkerLost' THEN 'WorkerLost' END,
               worker_name, claimed_at, _now
        FROM judged
    )
    SELECT jsonb_agg(jsonb_build_object('job', job, 'place', place)),
           array_agg(job) FILTER (WHERE place NOT IN ('ready', 'waiting'))
    INTO _moved, _ended FROM judged;
    IF _ended IS NOT NULL THEN
        PERFORM workron.settle_ends(_ended);
    END IF;
    RETURN QUERY SELECT m.job, m.place FROM jsonb_to_recordset(_moved) AS m(job bigint, place text);
END
$$;
