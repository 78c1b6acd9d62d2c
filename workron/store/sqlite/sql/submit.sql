-- submit: store runs, and link them to their upstreams and downstreams.
-- Waiting -> Queued (ready)
-- Waiting -> Skipped (skip)
-- Waiting -> Succeeded (succeed)

-- name: known
-- A known uid is acknowledged as it is.
SELECT id, suspended FROM run WHERE uid = :uid

-- name: unfinished
-- The newest run of the name, if it has not ended.
SELECT run.id, run.digest, run.suspended, run.cancelled
FROM name JOIN run ON run.id = name.run
WHERE name.namespace = :namespace AND name.kind = :kind AND name.name = :name
  AND NOT EXISTS (SELECT 1 FROM done WHERE done.job = run.id)

-- name: overlapping
-- Two submissions in one millisecond may draw overlapping ids; the later one moves behind.
SELECT last FROM (SELECT last FROM run WHERE id <= :last ORDER BY id DESC LIMIT 1)
WHERE last >= :run

-- name: add_run
-- The run and the range of its jobs.
INSERT INTO run (id, last, uid, namespace, kind, name, digest, submitted_at, metadata, suspended,
                  priority, finally_from, fail_fast, generation)
VALUES (:run, :last, :uid, :namespace, :kind, :name, :digest, :now, :metadata, :suspended,
        :priority, :finally_from, :fail_fast, :generation)

-- name: set_name
-- From here on the name means this run.
INSERT INTO name (namespace, kind, name, run) VALUES (:namespace, :kind, :name, :run)
ON CONFLICT (namespace, kind, name) DO UPDATE SET run = excluded.run

-- name: add_specs
-- One row per spec, for all jobs that share it.
INSERT INTO spec (id, body) VALUES (?, ?)

-- name: add_jobs
-- Written once, never changed.
INSERT INTO job (id, run, kind, spec, name, "index", item, group_id, group_condition, pool,
                 priority, feeds_inputs, max_losses, start_after, needs_proof, max_failures)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: add_edges
-- In order of the key, so that the B-tree grows at its end.
INSERT INTO edge (upstream, downstream, condition) VALUES (?, ?, ?)

-- name: add_deadlines
-- For jobs that have one.
INSERT INTO deadline (job, due) VALUES (?, ?)

-- name: add_waiting
-- All groups, and jobs with upstreams or suspended.
INSERT INTO waiting (job, remaining, suspended, priority) VALUES (?, ?, ?, ?)

-- name: select_empty_groups
-- A group without members waits for nothing; a count of 0 resolves it.
INSERT INTO temp.downstream_update (downstream, count, verdict)
SELECT job, 0, 0 FROM waiting WHERE job BETWEEN :run AND :last AND remaining = 0

-- name: select_unblocked_jobs
-- Jobs without a row in `waiting` may start.
INSERT INTO temp.unblocked_job (job, due, reason, priority, attempts, failures, losses, fence, alone)
SELECT job.id, CASE WHEN job.start_after > :now THEN job.start_after END, 'Scheduled',
       job.priority, 0, 0, 0, 0, 0
FROM job
WHERE job.id BETWEEN :run AND :last
  AND NOT EXISTS (SELECT 1 FROM waiting WHERE waiting.job = job.id)

-- name: add_external_dependencies
-- Upstreams by name; those that exist are linked by the statements below.
INSERT INTO external_dependency (downstream, namespace, kind, name, condition) VALUES (?, ?, ?, ?, ?)

-- name: select_new_edges
-- For the new run, the upstreams that exist; for all others, the jobs that wait for its name.
INSERT INTO temp.new_edge (upstream, downstream, condition)
SELECT name.run, external_dependency.downstream, external_dependency.condition
FROM external_dependency
CROSS JOIN name ON name.namespace = external_dependency.namespace AND name.kind = external_dependency.kind
               AND name.name = external_dependency.name
WHERE external_dependency.downstream BETWEEN :run AND :last
UNION
SELECT :run, external_dependency.downstream, external_dependency.condition
FROM external_dependency
WHERE external_dependency.namespace = :namespace AND external_dependency.kind = :kind AND external_dependency.name = :name

-- name: insert_new_edges
-- An ended upstream has an edge too: its result is an input, and users look at it.
INSERT INTO edge (upstream, downstream, condition) SELECT upstream, downstream, condition FROM temp.new_edge

-- name: count_ended_upstreams
-- An upstream that has ended and was propagated counts at once; one in `unpropagated` will reach this
-- edge.
INSERT INTO temp.downstream_update (downstream, count, verdict)
SELECT new_edge.downstream, count(*), max(evaluate(new_edge.condition, done.state, done.reason))
FROM temp.new_edge CROSS JOIN done ON done.job = new_edge.upstream
WHERE NOT EXISTS (SELECT 1 FROM unpropagated WHERE unpropagated.job = new_edge.upstream)
GROUP BY new_edge.downstream
ON CONFLICT (downstream) DO UPDATE SET
    count = downstream_update.count + excluded.count, verdict = max(downstream_update.verdict, excluded.verdict)

-- name: delete_external_dependencies
-- Linked jobs wait for a job, not for a name.
DELETE FROM external_dependency
WHERE (downstream BETWEEN :run AND :last
       AND EXISTS (SELECT 1 FROM name WHERE name.namespace = external_dependency.namespace
                   AND name.kind = external_dependency.kind AND name.name = external_dependency.name))
   OR (namespace = :namespace AND kind = :kind AND name = :name)

-- name: dependent_runs
-- All runs that wait for a run, directly or not; only waiting jobs can close a cycle.
WITH RECURSIVE walk (upstream, downstream) AS (
    SELECT edge.upstream, job.run
    FROM edge CROSS JOIN waiting ON waiting.job = edge.downstream CROSS JOIN job ON job.id = edge.downstream
    WHERE edge.upstream = :run
    UNION
    SELECT edge.upstream, job.run
    FROM walk
    CROSS JOIN edge ON edge.upstream = walk.downstream
    CROSS JOIN waiting ON waiting.job = edge.downstream
    CROSS JOIN job ON job.id = edge.downstream
)
SELECT walk.upstream, walk.downstream, run.name, run.uid
FROM walk JOIN run ON run.id = walk.downstream
