-- read_output: read the output of the newest attempt that has any: its chunks in order, then what
-- came with its end; or only the chunks needed for the last bytes. Sizes first, so that no more is
-- read than needed.
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
