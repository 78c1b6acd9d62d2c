-- jobs: a root and all its members, whichever place each is in, in order of id.
-- One statement, so that a job that moves meanwhile is seen exactly once.
WITH whole AS (
    SELECT id AS first, last FROM workron.root WHERE id = $1
), place AS (
    SELECT p.job, 'Waiting' AS state,
           CASE WHEN p.held THEN 'Suspended' WHEN p.unproven THEN 'AwaitingProof'
                ELSE 'Upstream' END AS reason,
           NULL AS message, p.priority, p.attempts, p.failures, p.losses, NULL::integer AS exit_code,
           NULL AS worker, NULL::timestamptz AS due, NULL::timestamptz AS started_at,
           NULL::timestamptz AS finished_at
    FROM whole w JOIN workron.waiting p ON p.job BETWEEN w.first AND w.last
    UNION ALL
    SELECT p.job, 'Queued', NULL, NULL, p.priority, p.attempts, p.failures, p.losses, NULL, NULL,
           NULL, NULL, NULL
    FROM whole w JOIN workron.ready p ON p.job BETWEEN w.first AND w.last
    UNION ALL
    SELECT p.job, 'Waiting', p.reason, NULL, p.priority, p.attempts, p.failures, p.losses, NULL, NULL,
           p.due, NULL, NULL
    FROM whole w JOIN workron.deferred p ON p.job BETWEEN w.first AND w.last
    UNION ALL
    SELECT p.job, 'Running', NULL, NULL, p.priority, p.attempt, p.failures, p.losses, NULL, k.name,
           NULL, p.claimed_at, NULL
    FROM whole w JOIN workron.running p ON p.job BETWEEN w.first AND w.last
    LEFT JOIN workron.worker k ON k.id = p.worker
    UNION ALL
    SELECT p.job, p.state, p.reason, p.message, j.priority, p.attempts, p.failures, p.losses,
           p.exit_code, p.worker, NULL, NULL, p.finished_at
    FROM whole w JOIN workron.done p ON p.job BETWEEN w.first AND w.last
    JOIN workron.job j ON j.id = p.job
), begun AS (
    SELECT a.job, min(a.started_at) AS started_at
    FROM whole w JOIN workron.attempt a ON a.job BETWEEN w.first AND w.last
    GROUP BY a.job
), member AS (
    SELECT j.id AS job, j.member_of, least(b.started_at, p.started_at) AS started_at,
           p.state NOT IN ('Waiting', 'Queued') AS has_moved
    FROM place p JOIN workron.job j ON j.id = p.job LEFT JOIN begun b ON b.job = p.job
    WHERE j.kind = 'Job'
), grouped AS (
    SELECT member_of AS job, min(started_at) AS started_at, bool_or(has_moved) AS has_moved
    FROM member GROUP BY member_of
    UNION ALL
    SELECT $1, min(started_at), bool_or(has_moved) FROM member WHERE member_of <> $1
), whole_group AS (
    SELECT job, min(started_at) AS started_at, bool_or(has_moved) AS has_moved
    FROM grouped GROUP BY job
)
SELECT j.id AS job, j.root, j.kind, j.name, j.index, j.member_of,
       CASE WHEN p.state = 'Waiting' AND g.has_moved THEN 'Running' ELSE p.state END AS state,
       CASE WHEN p.state = 'Waiting' AND g.has_moved THEN NULL ELSE p.reason END AS reason,
       p.message, p.priority, o.name AS pool, p.attempts, p.failures, p.losses, p.exit_code, p.worker,
       p.due, coalesce(g.started_at, b.started_at, p.started_at) AS started_at, p.finished_at
FROM place p
JOIN workron.job j ON j.id = p.job
JOIN workron.pool o ON o.id = j.pool
LEFT JOIN begun b ON b.job = p.job
LEFT JOIN whole_group g ON g.job = p.job AND j.kind <> 'Job'
ORDER BY j.id;
