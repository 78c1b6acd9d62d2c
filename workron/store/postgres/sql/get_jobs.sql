-- get_jobs: some jobs as they stand, in the order in which they are asked for. What is shown of each
-- is what `jobs` shows; a group, whose members follow it without a gap, is asked for by their range.
CREATE OR REPLACE FUNCTION workron.get_jobs(_jobs bigint[])
RETURNS TABLE (
    job bigint, run bigint, kind text, name text, index integer, group_id bigint, state text,
    reason text, message text, priority integer, pool text, attempts integer, failures integer,
    losses integer, exit_code integer, worker text, due timestamptz, started_at timestamptz,
    finished_at timestamptz
)
LANGUAGE sql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
    SELECT j.id AS job, j.run, j.kind, j.name, j.index, j.group_id,
           CASE WHEN g.has_begun AND p.state = 'Waiting' THEN 'Running' ELSE p.state END AS state,
           CASE WHEN g.has_begun AND p.state = 'Waiting' THEN NULL ELSE p.reason END AS reason,
           p.message, coalesce(p.priority, j.priority) AS priority, o.name AS pool, p.attempts,
           p.failures, p.losses, p.exit_code, p.worker, p.due,
           coalesce(g.started_at,
                    (SELECT min(a.started_at) FROM workron.attempt a WHERE a.job = j.id),
                    p.started_at) AS started_at,
           p.finished_at
    FROM unnest(_jobs) WITH ORDINALITY w(id, place)
    JOIN workron.job j ON j.id = w.id
    JOIN workron.pool o ON o.id = j.pool
    CROSS JOIN LATERAL (
        SELECT 'Waiting' AS state,
               CASE WHEN q.held THEN 'Suspended' WHEN q.unproven THEN 'AwaitingProof'
                    ELSE 'Upstream' END AS reason,
               NULL AS message, q.priority, q.attempts, q.failures, q.losses,
               NULL::integer AS exit_code, NULL AS worker, NULL::timestamptz AS due,
               NULL::timestamptz AS started_at, NULL::timestamptz AS finished_at
        FROM workron.waiting q WHERE q.job = j.id
        UNION ALL
        SELECT 'Queued', NULL, NULL, q.priority, q.attempts, q.failures, q.losses, NULL, NULL, NULL,
               NULL, NULL
        FROM workron.ready q WHERE q.job = j.id
        UNION ALL
        SELECT 'Waiting', q.reason, NULL, q.priority, q.attempts, q.failures, q.losses, NULL, NULL,
               q.due, NULL, NULL
        FROM workron.deferred q WHERE q.job = j.id
        UNION ALL
        SELECT 'Running', NULL, NULL, q.priority, q.attempt, q.failures, q.losses, NULL, k.name, NULL,
               q.claimed_at, NULL
        FROM workron.running q LEFT JOIN workron.worker k ON k.id = q.worker WHERE q.job = j.id
        UNION ALL
        SELECT q.state, q.reason, q.message, NULL, q.attempts, q.failures, q.losses, q.exit_code,
               q.worker, NULL, NULL, q.finished_at
        FROM workron.done q WHERE q.job = j.id
    ) p
    LEFT JOIN LATERAL (
        SELECT EXISTS (SELECT FROM workron.running q WHERE q.job BETWEEN j.id + 1 AND m.last)
               OR EXISTS (SELECT FROM workron.done q WHERE q.job BETWEEN j.id + 1 AND m.last)
                   AS has_begun,
               least(
                   (SELECT min(q.claimed_at) FROM workron.running q
                    WHERE q.job BETWEEN j.id + 1 AND m.last),
                   (SELECT min(a.started_at) FROM workron.attempt a
                    WHERE a.job BETWEEN j.id + 1 AND m.last)) AS started_at
        FROM (SELECT CASE WHEN j.kind = 'Workflow'
                          THEN (SELECT r.last FROM workron.run r WHERE r.id = j.id)
                          ELSE (SELECT e.id FROM workron.job e
                                WHERE e.group_id = j.id AND e.group_condition = 'Member'
                                ORDER BY e.index DESC LIMIT 1) END AS last) m
    ) g ON j.kind <> 'Job'
    ORDER BY w.place
$$;
