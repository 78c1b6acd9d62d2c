-- read_output: what the newest attempt that wrote anything wrote: its pieces in order, then what its end
-- brought. With a number, only the last of these that are needed for so many bytes.
SELECT p.data FROM (
    SELECT o.chunk, o.data,
           sum(octet_length(o.data)) OVER (ORDER BY o.chunk < 0 DESC, o.chunk DESC)
               - octet_length(o.data) AS behind
    FROM workron.output o
    WHERE o.job = $1 AND o.attempt = (SELECT max(attempt) FROM workron.output WHERE job = $1)
) p
WHERE $2::bigint IS NULL OR p.behind < $2
ORDER BY p.chunk < 0, p.chunk;
