-- list_jobs: a run and all its members, whichever place each is in, in order of id.
-- One statement, so that a job that moves meanwhile is seen exactly once. Each table is read by its
-- range of ids alone, before anything is joined: a plan that is free to join first may read it all.
CREATE OR REPLACE FUNCTION workron.list_jobs(_run bigint)
RETURNS TABLE (
    job bigint, run bigint, kind text, name text, index integer, group_id bigint, state text,
    reason text, message text, priority integer, pool text, attempts integer, failures integer,
    losses integer, exit_code integer, worker text, due timestamptz, started_at timestamptz,
    finished_at timestamptz
)
LANGUAGE sql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_nestloop = off
AS $$
    WITH whole AS (
        SELECT last FROM workron.run WHERE id = _run
    ), job AS MATERIALIZED (
        SELECT j.* FROM workron.job j
        WHERE j.id BETWEEN _run AND (SELECT last FROM whole)
    ), place AS MATERIALIZED (
        SELECT p.job, 'Waiting' AS state,
               CASE WHEN p.held THEN 'Suspended' WHEN p.unproven THEN 'AwaitingProof'
                    ELSE 'Upstream' END AS reason,
               NULL AS message, p.priority, p.attempts, p.failures, p.losses,
               NULL::integer AS exit_code, NULL AS worker, NULL::timestamptz AS due,
               NULL::timestamptz AS started_at, NULL::timestamptz AS finished_at
        FROM workron.waiting p
        WHERE p.job BETWEEN _run AND (SELECT last FROM whole)
        UNION ALL
        SELECT p.job, 'Queued', NULL, NULL, p.priority, p.attempts, p.failures, p.losses, NULL, NULL,
               NULL, NULL, NULL
        FROM workron.ready p
        WHERE p.job BETWEEN _run AND (SELECT last FROM whole)
        UNION ALL
        SELECT p.job, 'Waiting', p.reason, NULL, p.priority, p.attempts, p.failures, p.losses, NULL,
               NULL, p.due, NULL, NULL
        FROM workron.deferred p
        WHERE p.job BETWEEN _run AND (SELECT last FROM whole)
        UNION ALL
        SELECT p.job, 'Running', NULL, NULL, p.priority, p.attempt, p.failures, p.losses, NULL, k.name,
               NULL, p.claimed_at, NULL
        FROM workron.running p
        LEFT JOIN workron.worker k ON k.id = p.worker
        WHERE p.job BETWEEN _run AND (SELECT last FROM whole)
        UNION ALL
        SELECT p.job, p.state, p.reason, p.message, NULL, p.attempts, p.failures, p.losses,
               p.exit_code, p.worker, NULL, NULL, p.finished_at
        FROM workron.done p
        WHERE p.job BETWEEN _run AND (SELECT last FROM whole)
    ), begun AS MATERIALIZED (
        SELECT a.job, min(a.started_at) AS started_at
        FROM workron.attempt a
        WHERE a.job BETWEEN _run AND (SELECT last FROM whole)
        GROUP BY a.job
    ), member AS (
        SELECT j.id AS job, j.group_id, least(b.started_at, p.started_at) AS started_at,
               p.state NOT IN ('Waiting', 'Queued') AS has_moved
        FROM place p JOIN job j ON j.id = p.job LEFT JOIN begun b ON b.job = p.job
        WHERE j.kind = 'Job'
    ), grouped AS (
        SELECT group_id AS job, min(started_at) AS started_at, bool_or(has_moved) AS has_moved
        FROM member GROUP BY group_id
        UNION ALL
        SELECT _run, min(started_at), bool_or(has_moved) FROM member WHERE group_id <> _run
    ), whole_group AS (
        SELECT job, min(started_at) AS started_at, bool_or(has_moved) AS has_moved
        FROM grouped GROUP BY job
    )
    SELECT j.id AS job, j.run, j.kind, j.name, j.index, j.group_id,
           CASE WHEN p.state = 'Waiting' AND g.has_moved THEN 'Running' ELSE p.state END AS state,
           CASE WHEN p.state = 'Waiting' AND g.has_moved THEN NULL ELSE p.reason END AS reason,
           p.message, coalesce(p.priority, j.priority) AS priority, o.name AS pool, p.attempts,
           p.failures, p.losses, p.exit_code, p.worker, p.due,
           coalesce(g.started_at, b.started_at, p.started_at) AS started_at, p.finished_at
    FROM place p
    JOIN job j ON j.id = p.job
    JOIN workron.pool o ON o.id = j.pool
    LEFT JOIN begun b ON b.job = p.job
    LEFT JOIN whole_group g ON g.job = p.job AND j.kind <> 'Job'
    ORDER BY j.id
$$;
