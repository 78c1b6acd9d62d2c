-- decide: move on those of the given waiting jobs that wait for nothing any more.
-- Waiting -> Queued (ready)
-- Waiting -> Skipped (skip)
-- Waiting -> Cancelled (cancel)
-- Waiting -> Succeeded (succeed)
-- Waiting -> Failed (fail)
-- A group ends here, and so does a job that is skipped; both are left in `unsettled`, because telling
-- their downstreams now would take a second round of locks, and two rounds can deadlock.
CREATE OR REPLACE FUNCTION workron.decide(_jobs bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _now timestamptz := workron.now();
    _pools integer[];
    _priorities integer[];
    _firsts bigint[];
BEGIN
    -- In arrays of one, which only keys answer to: each row looks for its own job and run.
    WITH zero AS (
        DELETE FROM workron.waiting w
        USING workron.job j, workron.run r
        WHERE w.job = ANY (_jobs) AND w.remaining = 0 AND j.id = ANY (ARRAY[w.job]) AND r.id = ANY (ARRAY[j.run])
        RETURNING w.job, w.priority, w.attempts, w.failures, w.losses, w.fence, w.alone,
                  j.pool, j.kind, j.start_after,
                  CASE WHEN r.cancelled THEN 4 ELSE w.verdict END AS verdict
    ), goes AS (
        SELECT *, coalesce(start_after > _now, false) AS is_early
        FROM zero WHERE kind = 'Job' AND verdict = 0
    ), queued AS (
        INSERT INTO workron.ready (job, pool, priority, attempts, failures, losses, fence, alone)
        SELECT job, pool, priority, attempts, failures, losses, fence, alone
        FROM goes WHERE NOT is_early
        RETURNING job, pool, priority
    ), scheduled AS (
        INSERT INTO workron.deferred
            (job, due, reason, pool, priority, attempts, failures, losses, fence, alone)
        SELECT job, start_after, 'Scheduled', pool, priority, attempts, failures, losses, fence, alone
        FROM goes WHERE is_early
    ), ended AS (
        INSERT INTO workron.done
            (job, state, reason, finished_at, attempts, failures, losses)
        SELECT job,
               (ARRAY['Succeeded', 'Skipped', 'Skipped', 'Skipped', 'Cancelled', 'Failed'])[verdict + 1],
               (ARRAY[NULL, 'NotNeeded', 'UpstreamCancelled', 'UpstreamFailed', NULL,
                      'MemberFailed'])[verdict + 1],
               _now, attempts, failures, losses
        FROM zero WHERE kind <> 'Job' OR verdict > 0
        RETURNING job
    ), untold AS (
        INSERT INTO workron.unsettled (job) SELECT job FROM ended
    )
    SELECT array_agg(pool), array_agg(priority), array_agg(first) INTO _pools, _priorities, _firsts
    FROM (SELECT pool, max(priority) AS priority, min(job) AS first FROM queued GROUP BY pool) freed;
    -- Who told of an end may take at once what it has freed.
    PERFORM workron.pull_mark(pool, priority, first)
    FROM unnest(_pools, _priorities, _firsts) AS freed(pool, priority, first);
END
$$;
