-- read_output_chunks: some of what one attempt wrote, from one piece on; what its end brought stands last, under
-- the number behind the highest that a piece can have.

-- name: read_output_chunks
-- The end is one row, so that it costs nothing to add it and to cut it off again.
SELECT * FROM (
    SELECT * FROM (
        SELECT chunk, data FROM output
        WHERE job = :job AND attempt = :attempt AND chunk >= :chunk ORDER BY chunk LIMIT :most)
    UNION ALL
    SELECT 16384 AS chunk, data FROM output
    WHERE job = :job AND attempt = :attempt AND chunk = -1 AND :chunk <= 16384)
ORDER BY chunk LIMIT :most
