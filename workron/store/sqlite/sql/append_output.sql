-- append_output: store a chunk of a running job's output, if its claim is valid.

-- name: find_attempt
-- The attempt of the claim, if the claim is valid.
SELECT job, attempt FROM running WHERE claim = :claim AND fence = :fence AND worker = :worker

-- name: stored_chunks
-- The bytes stored so far, and whether this chunk is one of them.
SELECT coalesce(sum(length(data)), 0) AS bytes, coalesce(max(chunk = :chunk), 0) AS is_known
FROM output WHERE job = :job AND attempt = :attempt

-- name: insert_chunk
-- After the limits were checked.
INSERT INTO output (job, attempt, chunk, data) VALUES (:job, :attempt, :chunk, :data)
