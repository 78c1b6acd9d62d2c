-- append_output: store a piece of what a running job writes, while its claim stands.

-- name: standing
-- The attempt that it belongs to.
SELECT job, attempt FROM running WHERE claim = :claim AND fence = :fence AND worker = :worker

-- name: append
-- The same piece again is known by its number.
INSERT INTO output (job, attempt, chunk, data) VALUES (:job, :attempt, :chunk, :data)
ON CONFLICT DO NOTHING
