-- read_output_chunks: some of what one attempt wrote, from one piece on; what its end brought stands last, under
-- the number behind the highest that a piece can have.
SELECT p.chunk, p.data FROM (
    (SELECT o.chunk, o.data FROM workron.output o
     WHERE o.job = $1 AND o.attempt = $2 AND o.chunk >= $3 ORDER BY o.chunk LIMIT $4)
    UNION ALL
    SELECT 16384, o.data FROM workron.output o
    WHERE o.job = $1 AND o.attempt = $2 AND o.chunk = -1 AND $3 <= 16384
) p
ORDER BY p.chunk LIMIT $4;
