-- resolve_waiting: move on those of the given waiting jobs that wait for nothing any more.
-- Waiting -> Queued (ready)
-- Waiting -> Skipped (skip)
-- Waiting -> Cancelled (cancel)
-- Waiting -> Succeeded (succeed)
-- Waiting -> Failed (fail)
-- Jobs that end here, groups and skipped jobs, are left in `unpropagated`: propagating them now would
-- take a second round of locks, and two rounds can deadlock.
CREATE OR REPLACE FUNCTION workron.resolve_waiting(_jobs bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _now timestamptz := workron.now();
BEGIN
    -- `= ANY (ARRAY[...])` allows only lookups by key for each row, whatever the statistics.
    WITH resolved AS (
        DELETE FROM workron.waiting w
        USING workron.job j, workron.run r
        WHERE w.job = ANY (_jobs) AND w.remaining = 0 AND j.id = ANY (ARRAY[w.job]) AND r.id = ANY (ARRAY[j.run])
        RETURNING w.job, w.priority, w.attempts, w.failures, w.losses, w.fence, w.alone,
                  j.pool, j.kind, j.start_after, r.expired AND j.kind IN ('Workflow', 'Tasks') AS expired,
                  -- Jobs of `finally` run after a cancellation, too, but not by force.
                  r.cancelled AND (r.forced OR coalesce(w.job < r.finally_from, true)) AS cancelled,
                  CASE WHEN w.verdict > 0 AND j.max_failures IS NOT NULL AND j.kind = 'Array'
                       THEN workron.evaluate_array(w.job, j.max_failures)
                       ELSE w.verdict END AS verdict
    ), evaluated AS (
        SELECT job, priority, attempts, failures, losses, fence, alone, pool, kind, start_after, expired,
               -- A failure is not hidden by a cancellation.
               CASE WHEN expired THEN 5 WHEN cancelled THEN greatest(verdict, 4) ELSE verdict END AS verdict
        FROM resolved
    ), unblocked AS (
        SELECT *, coalesce(start_after > _now, false) AS starts_later
        FROM evaluated WHERE kind = 'Job' AND verdict = 0
    ), queued AS (
        INSERT INTO workron.ready (job, pool, priority, attempts, failures, losses, fence, alone)
        SELECT job, pool, priority, attempts, failures, losses, fence, alone
        FROM unblocked WHERE NOT starts_later
    ), scheduled AS (
        INSERT INTO workron.deferred
            (job, due, reason, pool, priority, attempts, failures, losses, fence, alone)
        SELECT job, start_after, 'Scheduled', pool, priority, attempts, failures, losses, fence, alone
        FROM unblocked WHERE starts_later
    ), ended AS (
        INSERT INTO workron.done
            (job, state, reason, finished_at, attempts, failures, losses)
        SELECT job,
               (ARRAY['Succeeded', 'Skipped', 'Skipped', 'Skipped', 'Cancelled', 'Failed'])[verdict + 1],
               CASE WHEN expired THEN 'DeadlineExceeded' ELSE
                   (ARRAY[NULL, 'NotNeeded', 'UpstreamCancelled', 'UpstreamFailed', NULL,
                          'MemberFailed'])[verdict + 1] END,
               _now, attempts, failures, losses
        FROM evaluated WHERE kind <> 'Job' OR verdict > 0
        RETURNING job
    )
    INSERT INTO workron.unpropagated (job) SELECT job FROM ended;
END
$$;
