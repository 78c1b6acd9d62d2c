-- read_output: read the output of the newest attempt that has any: its chunks in order, then what
-- came with its end; or only the chunks needed for the last bytes.
SELECT p.data FROM (
    SELECT o.chunk, o.data,
           sum(octet_length(o.data)) OVER (ORDER BY o.chunk < 0 DESC, o.chunk DESC)
               - octet_length(o.data) AS behind
    FROM workron.output o
    WHERE o.job = $1 AND o.attempt = (SELECT max(attempt) FROM workron.output WHERE job = $1)
) p
WHERE $2::bigint IS NULL OR p.behind < $2
ORDER BY p.chunk < 0, p.chunk;
