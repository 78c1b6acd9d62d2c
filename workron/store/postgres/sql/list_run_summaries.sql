-- list_run_summaries: list runs with their own state and progress, newest first; a null namespace
-- means all.
-- Ends are counted with groups, which are then subtracted.
CREATE OR REPLACE FUNCTION workron.list_run_summaries(_namespace text)
RETURNS TABLE (
    last_job bigint, namespace text, uid uuid, digest text, submitted_at timestamptz, metadata jsonb,
    job bigint, run bigint, kind text, name text, index integer, group_id bigint, state text,
    reason text, message text, priority integer, pool text, attempts integer, failures integer,
    losses integer, exit_code integer, worker text, due timestamptz, started_at timestamptz,
    finished_at timestamptz, is_cancelled boolean, commands integer, ended integer
)
LANGUAGE sql STABLE
AS $$
    SELECT r.last, r.namespace, r.uid, r.digest, r.submitted_at, r.metadata, h.*, r.cancel_requested, c.commands,
           CASE WHEN h.finished_at IS NOT NULL THEN c.commands
                ELSE (SELECT count(*) FROM workron.done q WHERE q.job BETWEEN r.id AND r.last)
                     - (SELECT count(*) FROM workron.job g JOIN workron.done q ON q.job = g.id
                        WHERE g.kind <> 'Job' AND g.id BETWEEN r.id AND r.last)
           END::integer AS ended
    FROM workron.get_jobs(ARRAY(
        -- Separate queries, so that a namespace is looked up in its index.
        SELECT n.id FROM workron.run n WHERE n.namespace = _namespace
        UNION ALL
        SELECT a.id FROM workron.run a WHERE _namespace IS NULL
    )) h
    -- LIMIT keeps the planner from scanning all runs in the requested order.
    CROSS JOIN LATERAL (SELECT * FROM workron.run o WHERE o.id = h.job LIMIT 1) r
    CROSS JOIN LATERAL (
        SELECT (r.last - r.id + 1 - count(*))::integer AS commands
        FROM workron.job g WHERE g.kind <> 'Job' AND g.id BETWEEN r.id AND r.last
    ) c
    ORDER BY r.id DESC
$$;
