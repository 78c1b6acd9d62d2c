-- append_output: store a piece of what a running job writes, while its claim stands.

-- name: find_attempt
-- The attempt that it belongs to.
SELECT job, attempt FROM running WHERE claim = :claim AND fence = :fence AND worker = :worker

-- name: stored_chunks
-- How much there is of it, and whether this piece is; the same again is known by its number.
SELECT coalesce(sum(length(data)), 0) AS bytes, coalesce(max(chunk = :chunk), 0) AS is_known
FROM output WHERE job = :job AND attempt = :attempt

-- name: insert_chunk
-- After all that was looked at.
INSERT INTO output (job, attempt, chunk, data) VALUES (:job, :attempt, :chunk, :data)
