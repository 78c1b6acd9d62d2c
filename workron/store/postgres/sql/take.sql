-- take: move ready jobs to a worker; the body of `claim`, and the second half of `complete`.
-- Queued -> Running (claim)
CREATE OR REPLACE FUNCTION workron.take(_worker workron.worker, _claims uuid[])
RETURNS TABLE (
    job bigint, claim uuid, attempt integer, failures integer, losses integer, fence bigint,
    namespace text, root text, name text, index integer, item jsonb, spec jsonb, inputs jsonb
)
LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    _now timestamptz;
    _picked bigint[];
    _holds_any boolean := true;
BEGIN
    -- A repeated call, its answer lost, gets what the first one took.
    IF EXISTS (SELECT 1 FROM workron.running r WHERE r.claim = ANY (_claims)) THEN
        RETURN QUERY SELECT * FROM workron.claimed(_worker.id, _claims);
        RETURN;
    END IF;
    IF cardinality(_claims) = 0 OR _worker.draining
        OR EXISTS (SELECT 1 FROM workron.running r WHERE r.worker = _worker.id AND r.alone) THEN
        RETURN;
    END IF;
    -- A job that must be alone is for a worker that holds nothing. So that there is one, those that
    -- hold least take no more while it waits; all others go on.
    IF EXISTS (SELECT 1 FROM workron.ready r WHERE r.pool = _worker.pool AND r.alone) THEN
        _holds_any := EXISTS (SELECT 1 FROM workron.running r WHERE r.worker = _worker.id);
        IF _holds_any AND workron.makes_room(_worker) THEN
            RETURN;
        END IF;
    END IF;
    IF NOT _holds_any THEN
        SELECT array_agg(job) INTO _picked FROM (
            SELECT job FROM workron.ready WHERE pool = _worker.pool AND alone
            ORDER BY priority DESC, job LIMIT 1 FOR UPDATE SKIP LOCKED
        ) p;
    ELSE
        _picked := workron.walk(_worker.pool, cardinality(_claims));
    END IF;

    -- Read only now, so that no claim seems to be older than what made its job ready.
    _now := workron.now();
    WITH taken AS (
        DELETE FROM workron.ready r WHERE r.job = ANY (_picked) RETURNING r.*
    ), numbered AS (
        SELECT *, row_number() OVER (ORDER BY priority DESC, job) AS number FROM taken
    )
    INSERT INTO workron.running
        (job, worker, beat, claim, pool, priority, attempt, failures, losses, fence, alone, claimed_at)
    SELECT job, _worker.id,
           -- Not from `_worker`, which may have been read before its lock was there.
           (SELECT w.beats FROM workron.worker w WHERE w.id = _worker.id),
           _claims[number], pool, priority, attempts + 1, failures, losses,
           -- Microseconds rise even across commits that a failover lost.
           greatest(fence + 1, (extract(epoch FROM _now) * 1000000)::bigint), alone, _now
    FROM numbered;
    RETURN QUERY SELECT * FROM workron.claimed(_worker.id, _claims);
END
$$;
