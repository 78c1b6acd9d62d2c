-- progress: the commands of a root by state, groups not counted.
SELECT p.state, count(*)::integer AS count
FROM workron.root r
CROSS JOIN LATERAL (
    SELECT job, 'Waiting' AS state FROM workron.waiting WHERE job BETWEEN r.id AND r.last
    UNION ALL SELECT job, 'Queued' FROM workron.ready WHERE job BETWEEN r.id AND r.last
    UNION ALL SELECT job, 'Waiting' FROM workron.deferred WHERE job BETWEEN r.id AND r.last
    UNION ALL SELECT job, 'Running' FROM workron.running WHERE job BETWEEN r.id AND r.last
    UNION ALL SELECT job, state FROM workron.done WHERE job BETWEEN r.id AND r.last
) p
JOIN workron.job j ON j.id = p.job AND j.kind = 'Job'
WHERE r.id = $1
GROUP BY p.state;
