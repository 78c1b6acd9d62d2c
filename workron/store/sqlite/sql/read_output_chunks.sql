-- read_output_chunks: read some chunks of an attempt; what came with its end is the last one,
-- numbered one above the highest chunk.
SELECT * FROM (
    SELECT * FROM (
        SELECT chunk, data FROM output
        WHERE job = :job AND attempt = :attempt AND chunk >= :chunk ORDER BY chunk LIMIT :limit)
    UNION ALL
    SELECT 16384 AS chunk, data FROM output
    WHERE job = :job AND attempt = :attempt AND chunk = -1 AND :chunk <= 16384)
ORDER BY chunk LIMIT :limit
