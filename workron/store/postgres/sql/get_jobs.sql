-- get_jobs: get some jobs and their current states, in the given order.
-- A group's members have the ids that follow its own, so what it shows of them is read by that range.
CREATE OR REPLACE FUNCTION workron.get_jobs(_jobs bigint[])
RETURNS TABLE (
    job bigint, run bigint, kind text, name text, index integer, group_id bigint, state text,
    reason text, message text, priority integer, pool text, attempts integer, failures integer,
    losses integer, exit_code integer, worker text, due timestamptz, started_at timestamptz,
    finished_at timestamptz
)
LANGUAGE sql STABLE
AS $$
    SELECT j.id AS job, j.run, j.kind, j.name, j.index, j.group_id,
           CASE WHEN g.has_begun AND l.state = 'Waiting' THEN 'Running' ELSE l.state END AS state,
           CASE WHEN g.has_begun AND l.state = 'Waiting' THEN NULL ELSE l.reason END AS reason,
           l.message, coalesce(l.priority, j.priority) AS priority, p.name AS pool, l.attempts,
           l.failures, l.losses, l.exit_code, l.worker, l.due,
           coalesce(g.started_at,
                    (SELECT min(a.started_at) FROM workron.attempt a WHERE a.job = j.id),
                    l.started_at) AS started_at,
           l.finished_at
    FROM unnest(_jobs) WITH ORDINALITY wanted(id, number)
    JOIN workron.job j ON j.id = wanted.id
    JOIN workron.pool p ON p.id = j.pool
    -- OFFSET 0 keeps it a lookup by key for each job.
    CROSS JOIN LATERAL (SELECT * FROM workron.job_location WHERE job = j.id OFFSET 0) l
    LEFT JOIN LATERAL (
        SELECT EXISTS (SELECT FROM workron.running r WHERE r.job BETWEEN j.id + 1 AND m.last)
               OR EXISTS (SELECT FROM workron.done d WHERE d.job BETWEEN j.id + 1 AND m.last)
                   AS has_begun,
               least(
                   (SELECT min(r.claimed_at) FROM workron.running r
                    WHERE r.job BETWEEN j.id + 1 AND m.last),
                   (SELECT min(a.started_at) FROM workron.attempt a
                    WHERE a.job BETWEEN j.id + 1 AND m.last)) AS started_at
        FROM (SELECT CASE j.kind
            WHEN 'Workflow' THEN (SELECT r.last FROM workron.run r WHERE r.id = j.id)
            WHEN 'Tasks' THEN (SELECT r.finally_from - 1 FROM workron.run r WHERE r.id = j.run)
            ELSE (SELECT e.id FROM workron.job e WHERE e.group_id = j.id AND e.group_condition = 'Member'
                  ORDER BY e.index DESC LIMIT 1) END AS last) m
    ) g ON j.kind <> 'Job'
    ORDER BY wanted.number
$$;
