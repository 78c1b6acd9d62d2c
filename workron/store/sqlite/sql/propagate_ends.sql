-- propagate_ends: record ended jobs, propagate them to their downstreams and groups, and resolve jobs
-- that wait for nothing more.
-- Waiting -> Queued (ready)
-- Waiting -> Skipped (skip)
-- Waiting -> Cancelled (cancel)
-- Waiting -> Succeeded (succeed)
-- Waiting -> Failed (fail)

-- name: insert_done
-- The primary key allows one end per job.
INSERT INTO done
    (job, state, reason, message, exit_code, finished_at, attempts, failures, losses, worker)
SELECT job, state, reason, message, exit_code, :now, attempts, failures, losses, worker
FROM temp.ended_job

-- name: delete_deadlines
-- An ended job has no deadline.
DELETE FROM deadline WHERE job IN (SELECT job FROM temp.ended_job)

-- name: delete_external_dependencies
-- An ended job waits for no name.
DELETE FROM external_dependency WHERE downstream IN (SELECT job FROM temp.ended_job)

-- name: delete_awaiting_proof
-- An ended job waits for no proof.
DELETE FROM awaiting_proof WHERE job IN (SELECT job FROM temp.ended_job)

-- name: select_downstreams
-- Each end counts once for each downstream and for its group; the highest verdict wins.
INSERT INTO temp.downstream_update (downstream, count, verdict)
SELECT downstream, count(*), max(verdict)
FROM (
    SELECT edge.downstream AS downstream, evaluate(edge.condition, ended_job.state, ended_job.reason) AS verdict
    FROM temp.ended_job CROSS JOIN edge ON edge.upstream = ended_job.job
    UNION ALL
    SELECT job.group_id, evaluate(job.group_condition, ended_job.state, ended_job.reason)
    FROM temp.ended_job CROSS JOIN job ON job.id = ended_job.job
    WHERE job.group_id IS NOT NULL
)
GROUP BY downstream

-- name: cancel_failed_runs
-- With `failFast` the first failed task cancels its run; verdict 5 is FAILED. An array that may have
-- failed elements counts when it has ended, and `finally` does not count.
UPDATE run SET cancelled = 1, suspended = 0
WHERE id IN (
    SELECT own.id
    FROM temp.downstream_update
    CROSS JOIN job ON job.id = downstream_update.downstream
    CROSS JOIN run AS own ON own.id = job.run
    WHERE downstream_update.verdict = 5 AND own.fail_fast AND NOT own.cancelled
      AND CASE job.kind WHEN 'Array' THEN job.max_failures IS NULL AND job.group_condition = 'Task'
                                          AND (own.finally_from IS NULL OR job.id < own.finally_from)
                        WHEN 'Workflow' THEN own.finally_from IS NULL
                        ELSE job.kind = 'Tasks' END)

-- name: request_cancellations
-- The maintainer carries them out.
INSERT INTO bulk_update (run, operation)
SELECT DISTINCT run.id, 'cancel'
FROM temp.downstream_update
CROSS JOIN job ON job.id = downstream_update.downstream
CROSS JOIN run ON run.id = job.run
WHERE downstream_update.verdict = 5 AND run.fail_fast AND run.cancelled
ON CONFLICT (run) DO UPDATE SET operation = excluded.operation

-- name: count_down
-- A job that was cancelled or has expired has no row here.
UPDATE waiting SET
    remaining = remaining - (SELECT downstream_update.count FROM temp.downstream_update WHERE downstream_update.downstream = waiting.job),
    verdict = max(verdict, (SELECT downstream_update.verdict FROM temp.downstream_update WHERE downstream_update.downstream = waiting.job))
WHERE job IN (SELECT downstream FROM temp.downstream_update)

-- name: select_unblocked_jobs
-- A job goes on if no verdict prevents it; verdict 0 is GO.
INSERT INTO temp.unblocked_job (job, due, reason, priority, attempts, failures, losses, fence, alone)
SELECT waiting.job, CASE WHEN job.start_after > :now THEN job.start_after END, 'Scheduled',
       waiting.priority, waiting.attempts, waiting.failures, waiting.losses, waiting.fence,
       waiting.alone
FROM temp.downstream_update
CROSS JOIN waiting ON waiting.job = downstream_update.downstream
CROSS JOIN job ON job.id = waiting.job
WHERE waiting.remaining = 0 AND waiting.verdict = 0 AND job.kind = 'Job'

-- name: select_ended_jobs
-- All others end: groups by the verdict of their members, jobs as skipped. An array in which
-- elements may fail is evaluated again; an element that was skipped because its upstream failed counts
-- as a failure. A failure is not hidden by a cancellation, and a run whose deadline has passed fails.
-- Verdict 5 is FAILED, 4 is CANCELLED, 3 is UPSTREAM_FAILED.
INSERT INTO temp.ended_job (job, state, reason, attempts, failures, losses)
SELECT job, end_state(verdict),
       CASE WHEN expired THEN 'DeadlineExceeded' ELSE end_reason(verdict) END,
       attempts, failures, losses
FROM (
    SELECT waiting.job, waiting.attempts, waiting.failures, waiting.losses,
           run.expired AND job.kind IN ('Workflow', 'Tasks') AS expired,
           max(5 * (run.expired AND job.kind IN ('Workflow', 'Tasks')),
               4 * (run.cancelled AND (run.forced OR run.finally_from IS NULL
                                       OR waiting.job < run.finally_from)), CASE
               WHEN waiting.verdict > 0 AND job.max_failures IS NOT NULL AND job.kind = 'Array' THEN (
                   SELECT CASE WHEN sum(element.verdict IN (3, 5)) > job.max_failures
                               THEN max(element.verdict)
                               ELSE coalesce(max(element.verdict)
                                             FILTER (WHERE element.verdict NOT IN (3, 5)), 0) END
                   FROM (
                       SELECT evaluate('Member', done.state, done.reason) AS verdict
                       FROM job AS member CROSS JOIN done ON done.job = member.id
                       WHERE member.group_id = waiting.job AND member.group_condition = 'Member'
                   ) AS element)
               ELSE waiting.verdict END) AS verdict
    FROM temp.downstream_update
    CROSS JOIN waiting ON waiting.job = downstream_update.downstream
    CROSS JOIN job ON job.id = waiting.job
    CROSS JOIN run ON run.id = job.run
    WHERE waiting.remaining = 0 AND (waiting.verdict > 0 OR job.kind <> 'Job')
)

-- name: delete_waiting
-- Each is now in `unblocked_job` or `ended_job`.
DELETE FROM waiting WHERE remaining = 0 AND job IN (SELECT downstream FROM temp.downstream_update)

-- name: insert_unpropagated
-- The maintainer propagates these ends, one level per step.
INSERT INTO unpropagated (job) SELECT job FROM temp.ended_job
