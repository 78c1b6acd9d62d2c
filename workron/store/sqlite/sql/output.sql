-- output: what the newest attempt that wrote anything wrote; its stream if there is one, else its tail.

-- name: output
-- The tail repeats the end of the stream.
WITH newest AS (
    SELECT attempt, max(chunk) AS chunk FROM output
    WHERE job = :job AND attempt = (SELECT max(attempt) FROM output WHERE job = :job)
)
SELECT output.data FROM newest CROSS JOIN output ON output.attempt = newest.attempt
WHERE output.job = :job AND (newest.chunk < 0 OR output.chunk >= 0)
ORDER BY output.chunk
