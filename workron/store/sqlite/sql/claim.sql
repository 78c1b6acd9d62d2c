-- claim: claim up to one ready job per claim id, by priority, then by age.
-- Queued -> Running (claim)

-- name: select_repeated
-- What an earlier call with these ids claimed; then nothing new is claimed.
INSERT INTO temp.new_claim
    (number, job, worker, pool, priority, attempt, failures, losses, fence, alone)
SELECT claim.key + 1, running.job, running.worker, running.pool, running.priority, running.attempt,
       running.failures, running.losses, running.fence, running.alone
FROM json_each(:claims) AS claim CROSS JOIN running ON running.claim = claim.value

-- name: constraints
-- A worker that holds a job that must run alone claims nothing more.
SELECT EXISTS (SELECT 1 FROM running WHERE worker = :worker) AS holds_any,
       EXISTS (SELECT 1 FROM running WHERE worker = :worker AND alone) AS holds_alone,
       EXISTS (SELECT 1 FROM ready WHERE pool = :pool AND alone = 1) AS is_alone_ready

-- name: is_reserved_for_alone
-- A job that must run alone needs a worker without claims. The least loaded workers claim nothing
-- while such jobs are ready, one per job; all others go on.
WITH load AS (
    SELECT worker.id, count(running.job) AS claims
    FROM worker LEFT JOIN running ON running.worker = worker.id
    WHERE worker.pool = :pool AND NOT worker.draining
    GROUP BY worker.id
    HAVING NOT coalesce(max(running.alone), 0)
)
SELECT (SELECT count(*) FROM load CROSS JOIN load AS mine
        WHERE mine.id = :worker AND (load.claims, load.id) < (mine.claims, mine.id))
     < (SELECT count(*) FROM ready WHERE pool = :pool AND alone = 1) AS is_reserved

-- name: select_ready
-- In the order of the index, up to the number of claim ids. A fence increases with every claim; as it
-- is at least the time in microseconds, also across lost commits.
INSERT INTO temp.new_claim (job, worker, pool, priority, attempt, failures, losses, fence, alone)
SELECT job, :worker, pool, priority, attempts + 1, failures, losses, max(fence + 1, :now), alone
FROM ready
WHERE pool = :pool AND alone = :alone
ORDER BY priority DESC, job LIMIT :count

-- name: delete_ready
-- No other worker can claim them now.
DELETE FROM ready WHERE job IN (SELECT job FROM temp.new_claim)

-- name: insert_running
-- Each under the claim id of its number.
INSERT INTO running (job, worker, claim, pool, priority, attempt, failures, losses, fence, alone,
                     claimed_at)
SELECT new_claim.job, new_claim.worker, claim.value, new_claim.pool, new_claim.priority, new_claim.attempt, new_claim.failures,
       new_claim.losses, new_claim.fence, new_claim.alone, :now
FROM json_each(:claims) AS claim CROSS JOIN temp.new_claim ON new_claim.number = claim.key + 1

-- name: claimed_jobs
-- What a worker needs to run the jobs. The job after the run is the group of its tasks, in a workflow with
-- `finally`.
SELECT new_claim.number, new_claim.job, new_claim.attempt, new_claim.failures, new_claim.losses, new_claim.fence,
       run.namespace, run.name AS run, job.name, job."index", job.item, job.spec,
       job.feeds_inputs,
       CASE WHEN job.id >= run.finally_from
            THEN (SELECT done.state FROM done WHERE done.job = run.id + 1) END AS run_state
FROM temp.new_claim
CROSS JOIN job ON job.id = new_claim.job
CROSS JOIN run ON run.id = job.run
WHERE new_claim.worker = :worker
ORDER BY new_claim.number

-- name: specs
-- Each text once, for all jobs that share it.
SELECT spec.id, spec.body FROM json_each(:specs) AS wanted CROSS JOIN spec ON spec.id = wanted.value

-- name: upstreams
-- The jobs whose results are inputs.
SELECT edge.downstream, edge.upstream, upstream.name
FROM json_each(:jobs) AS wanted
CROSS JOIN edge ON edge.downstream = wanted.value
CROSS JOIN job AS upstream ON upstream.id = edge.upstream
ORDER BY edge.downstream, edge.upstream

-- name: result_sizes
-- Sizes first, so that inputs that are too large are never read.
SELECT wanted.value AS upstream,
       coalesce((SELECT length(CAST(result.body AS BLOB)) FROM result WHERE result.job = wanted.value),
                (SELECT sum(length(CAST(result.body AS BLOB)))
                 FROM job AS element CROSS JOIN result ON result.job = element.id
                 WHERE element.group_id = wanted.value AND element.group_condition = 'Member'),
                0) AS size
FROM json_each(:upstreams) AS wanted

-- name: results
-- A job's own result has no index; the results of an array are ordered by index, with null for none.
SELECT wanted.value AS upstream, NULL AS "index", result.body
FROM json_each(:upstreams) AS wanted CROSS JOIN result ON result.job = wanted.value
UNION ALL
SELECT wanted.value, element."index", result.body
FROM json_each(:upstreams) AS wanted
CROSS JOIN job AS element ON element.group_id = wanted.value AND element.group_condition = 'Member'
LEFT JOIN result ON result.job = element.id
ORDER BY 1, 2
