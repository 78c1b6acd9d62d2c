-- output: what the newest attempt that wrote anything wrote; its stream if there is one, else its tail.
WITH newest AS (
    SELECT max(attempt) AS attempt, max(chunk) AS chunk FROM workron.output o
    WHERE o.job = $1 AND o.attempt = (SELECT max(attempt) FROM workron.output WHERE job = $1)
)
SELECT o.data FROM workron.output o JOIN newest n ON n.attempt = o.attempt
WHERE o.job = $1 AND (n.chunk < 0 OR o.chunk >= 0)
ORDER BY o.chunk;
