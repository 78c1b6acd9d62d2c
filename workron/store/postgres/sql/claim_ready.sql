-- claim_ready: move ready jobs to a worker; true if there are claims under these ids to return.
-- `_start` is the scan start of its pool; null: it was not read yet.
-- Queued -> Running (claim)
CREATE OR REPLACE FUNCTION workron.claim_ready(
    _worker workron.worker, _claims uuid[], _start workron.scan_start
) RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    _now timestamptz;
    _picked bigint[];
    _is_repeated boolean;
    _runs_alone boolean;
    _takes_alone boolean;
BEGIN
    IF cardinality(_claims) = 0 THEN
        RETURN false;
    END IF;
    SELECT EXISTS (SELECT 1 FROM workron.running r WHERE r.claim = ANY (_claims)),
           EXISTS (SELECT 1 FROM workron.running r WHERE r.worker = _worker.id AND r.alone),
           EXISTS (SELECT 1 FROM workron.ready r WHERE r.pool = _worker.pool AND r.alone)
    INTO _is_repeated, _runs_alone, _takes_alone;
    -- A repeated call, whose answer was lost, returns what the first one claimed.
    IF _is_repeated OR _runs_alone OR _worker.draining THEN
        RETURN _is_repeated;
    END IF;
    -- A job that must run alone needs a worker without claims. The least loaded workers, one for each
    -- such job, claim nothing while it is ready; all others go on.
    IF _takes_alone THEN
        _takes_alone := NOT EXISTS (SELECT 1 FROM workron.running r WHERE r.worker = _worker.id);
        IF NOT _takes_alone AND (
            WITH load AS (
                SELECT w.id, count(r.job) AS claims
                FROM workron.worker w LEFT JOIN workron.running r ON r.worker = w.id
                WHERE w.pool = _worker.pool AND NOT w.draining
                GROUP BY w.id
                HAVING NOT coalesce(bool_or(r.alone), false)
            )
            SELECT (SELECT count(*) FROM load, load AS mine
                    WHERE mine.id = _worker.id AND (load.claims, load.id) < (mine.claims, mine.id))
                 < (SELECT count(*) FROM workron.ready WHERE pool = _worker.pool AND alone)
        ) THEN
            RETURN false;
        END IF;
    END IF;
    IF _takes_alone THEN
        SELECT array_agg(job) INTO _picked FROM (
            SELECT job FROM workron.ready WHERE pool = _worker.pool AND alone
            ORDER BY priority DESC, job LIMIT 1 FOR UPDATE SKIP LOCKED
        ) p;
    ELSE
        IF _start.pool IS NULL THEN
            _start := workron.read_scan_start(_worker.pool);
        END IF;
        _picked := workron.lock_ready_jobs(_start, cardinality(_claims));
        -- An idle worker applies ends that others left pending; that may make jobs ready.
        IF _picked IS NULL AND workron.process_pending_ends(1000) > 0 THEN
            _picked := workron.lock_ready_jobs(_start, cardinality(_claims));
        END IF;
    END IF;
    IF _picked IS NULL THEN
        RETURN false;
    END IF;

    -- Read only now, so that no claim is older than the end that made its job ready.
    _now := workron.now();
    WITH taken AS (
        DELETE FROM workron.ready r WHERE r.job = ANY (_picked) RETURNING r.*
    ), numbered AS (
        SELECT *, row_number() OVER (ORDER BY priority DESC, job) AS number FROM taken
    )
    INSERT INTO workron.running
        (job, worker, heartbeat, claim, pool, priority, attempt, failures, losses, fence, alone, claimed_at)
    SELECT job, _worker.id,
           -- Not from `_worker`, which may have been read before its row was locked.
           (SELECT w.heartbeats FROM workron.worker w WHERE w.id = _worker.id),
           _claims[number], pool, priority, attempts + 1, failures, losses,
           -- Microseconds also increase across commits that a failover has lost.
           greatest(fence + 1, (extract(epoch FROM _now) * 1000000)::bigint), alone, _now
    FROM numbered;
    RETURN FOUND;
END
$$;
