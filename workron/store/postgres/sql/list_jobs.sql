-- list_jobs: list all jobs of a run and their current states, in order of id, without the group of the
-- tasks of a workflow that has `finally`.
-- One statement, so that a job that moves meanwhile is listed exactly once. Each table is read by its
-- range of ids and materialized before any join: a free planner may join first and read all of it.
CREATE OR REPLACE FUNCTION workron.list_jobs(_run bigint)
RETURNS TABLE (
    job bigint, run bigint, kind text, name text, index integer, group_id bigint, state text,
    reason text, message text, priority integer, pool text, attempts integer, failures integer,
    losses integer, exit_code integer, worker text, due timestamptz, started_at timestamptz,
    finished_at timestamptz
)
LANGUAGE sql STABLE
AS $$
    WITH job AS MATERIALIZED (
        SELECT j.* FROM workron.job j
        WHERE j.id BETWEEN _run AND (SELECT last FROM workron.run WHERE id = _run)
    ), location AS MATERIALIZED (
        SELECT l.* FROM workron.job_location l
        WHERE l.job BETWEEN _run AND (SELECT last FROM workron.run WHERE id = _run)
    ), first_attempt AS MATERIALIZED (
        SELECT a.job, min(a.started_at) AS started_at
        FROM workron.attempt a
        WHERE a.job BETWEEN _run AND (SELECT last FROM workron.run WHERE id = _run)
        GROUP BY a.job
    ), member AS (
        SELECT j.id AS job, j.group_id, least(f.started_at, l.started_at) AS started_at,
               l.state NOT IN ('Waiting', 'Queued') AS has_begun
        FROM location l JOIN job j ON j.id = l.job LEFT JOIN first_attempt f ON f.job = l.job
        WHERE j.kind = 'Job'
    ), by_group AS (
        SELECT group_id AS job, min(started_at) AS started_at, bool_or(has_begun) AS has_begun
        FROM member GROUP BY group_id
        UNION ALL
        SELECT _run, min(started_at), bool_or(has_begun) FROM member WHERE group_id <> _run
    ), groups AS (
        SELECT job, min(started_at) AS started_at, bool_or(has_begun) AS has_begun
        FROM by_group GROUP BY job
    )
    SELECT j.id AS job, j.run, j.kind, j.name, j.index, j.group_id,
           CASE WHEN l.state = 'Waiting' AND g.has_begun THEN 'Running' ELSE l.state END AS state,
           CASE WHEN l.state = 'Waiting' AND g.has_begun THEN NULL ELSE l.reason END AS reason,
           l.message, coalesce(l.priority, j.priority) AS priority, p.name AS pool, l.attempts,
           l.failures, l.losses, l.exit_code, l.worker, l.due,
           coalesce(g.started_at, f.started_at, l.started_at) AS started_at, l.finished_at
    FROM location l
    JOIN job j ON j.id = l.job
    JOIN workron.pool p ON p.id = j.pool
    LEFT JOIN first_attempt f ON f.job = l.job
    LEFT JOIN groups g ON g.job = l.job AND j.kind <> 'Job'
    WHERE j.kind <> 'Tasks'
    ORDER BY j.id
$$;
