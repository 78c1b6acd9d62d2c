-- promote: queue deferred jobs that are due.
-- Waiting -> Queued (ready)
WITH due AS MATERIALIZED (
    SELECT job FROM workron.deferred WHERE due <= workron.now()
    ORDER BY due LIMIT $1 FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM workron.deferred d USING due WHERE d.job = due.job RETURNING d.*
), queued AS (
    INSERT INTO workron.ready (job, pool, priority, attempts, failures, losses, fence, alone)
    SELECT job, pool, priority, attempts, failures, losses, fence, alone FROM taken
)
SELECT count(*)::integer AS moved FROM taken;
