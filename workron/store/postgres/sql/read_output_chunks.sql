-- read_output_chunks: read some chunks of an attempt; what came with its end is the last one,
-- numbered one above the highest chunk.
SELECT p.chunk, p.data FROM (
    (SELECT o.chunk, o.data FROM workron.output o
     WHERE o.job = $1 AND o.attempt = $2 AND o.chunk >= $3 ORDER BY o.chunk LIMIT $4)
    UNION ALL
    SELECT 16384, o.data FROM workron.output o
    WHERE o.job = $1 AND o.attempt = $2 AND o.chunk = -1 AND $3 <= 16384
) p
ORDER BY p.chunk LIMIT $4;
