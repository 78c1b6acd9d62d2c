-- read_output: what the newest attempt that wrote anything wrote: its pieces in order, then what its end
-- brought. With a number, only the last of these that are needed for so many bytes.

-- name: read_output
-- Sizes first, so that no more is read than is given.
WITH sized AS (
    SELECT attempt, chunk, length(data) AS size FROM output
    WHERE job = :job AND attempt = (SELECT max(attempt) FROM output WHERE job = :job)
), placed AS (
    SELECT attempt, chunk, sum(size) OVER (ORDER BY chunk < 0 DESC, chunk DESC) - size AS behind
    FROM sized
)
SELECT output.data
FROM placed CROSS JOIN output
     ON output.job = :job AND output.attempt = placed.attempt AND output.chunk = placed.chunk
WHERE :last IS NULL OR placed.behind < :last
ORDER BY output.chunk < 0, output.chunk
