-- settle_ends: write ends down, tell their downstreams and groups, and decide who waits for no more;
-- shared by all verbs that end something.
-- Waiting -> Queued (ready)
-- Waiting -> Skipped (skip)
-- Waiting -> Cancelled (cancel)
-- Waiting -> Succeeded (succeed)
-- Waiting -> Failed (fail)

-- name: record
-- The primary key makes it one end a job.
INSERT INTO done
    (job, state, reason, message, exit_code, finished_at, attempts, failures, losses, worker)
SELECT job, state, reason, message, exit_code, :now, attempts, failures, losses, worker
FROM temp.ended

-- name: drop_deadlines
-- An end needs no deadline.
DELETE FROM deadline WHERE job IN (SELECT job FROM temp.ended)

-- name: drop_unbound
-- Who has ended waits for no name.
DELETE FROM unbound WHERE child IN (SELECT job FROM temp.ended)

-- name: drop_missing
-- Nor for a proof.
DELETE FROM missing WHERE job IN (SELECT job FROM temp.ended)

-- name: tell
-- Each end counts once with each downstream and with its group; the gravest verdict wins.
INSERT INTO temp.told (child, ends, verdict)
SELECT child, count(*), max(verdict)
FROM (
    SELECT edge.child AS child, weigh(edge.condition, ended.state, ended.reason) AS verdict
    FROM temp.ended CROSS JOIN edge ON edge.parent = ended.job
    UNION ALL
    SELECT job.group_id, weigh(job.group_condition, ended.state, ended.reason)
    FROM temp.ended CROSS JOIN job ON job.id = ended.job
    WHERE job.group_id IS NOT NULL
)
GROUP BY child

-- name: hear
-- A job that was cancelled or expired meanwhile has no row here, and hears nothing.
UPDATE waiting SET
    remaining = remaining - (SELECT told.ends FROM temp.told WHERE told.child = waiting.job),
    verdict = max(verdict, (SELECT told.verdict FROM temp.told WHERE told.child = waiting.job))
WHERE job IN (SELECT child FROM temp.told)

-- name: free
-- A command goes when nothing spoke against it; verdict 0 is GO.
INSERT INTO temp.moving (job, due, reason, priority, attempts, failures, losses, fence, alone)
SELECT waiting.job, CASE WHEN job.start_after > :now THEN job.start_after END, 'Scheduled',
       waiting.priority, waiting.attempts, waiting.failures, waiting.losses, waiting.fence,
       waiting.alone
FROM temp.told
CROSS JOIN waiting ON waiting.job = told.child
CROSS JOIN job ON job.id = waiting.job
WHERE waiting.remaining = 0 AND waiting.verdict = 0 AND job.kind = 'Job'

-- name: decide
-- All others end: groups as their members did, commands as skipped.
INSERT INTO temp.ended (job, state, reason, attempts, failures, losses)
SELECT waiting.job,
       CASE WHEN run.cancelled THEN 'Cancelled' ELSE outcome_state(waiting.verdict) END,
       CASE WHEN run.cancelled THEN NULL ELSE outcome_reason(waiting.verdict) END,
       waiting.attempts, waiting.failures, waiting.losses
FROM temp.told
CROSS JOIN waiting ON waiting.job = told.child
CROSS JOIN job ON job.id = waiting.job
CROSS JOIN run ON run.id = job.run
WHERE waiting.remaining = 0 AND (waiting.verdict > 0 OR job.kind <> 'Job')

-- name: leave_waiting
-- Each of them is now in `moving` or in `ended`.
DELETE FROM waiting WHERE remaining = 0 AND job IN (SELECT child FROM temp.told)

-- name: postpone
-- What ended by being told is told on by the maintainer, one level a step.
INSERT INTO unsettled (job) SELECT job FROM temp.ended
