-- bulk_prioritize: change the priority of a bounded number of a run's jobs.

-- name: ready
-- Their position in the claim order changes.
UPDATE ready SET priority = :priority
WHERE job IN (SELECT job FROM ready WHERE job BETWEEN :run AND :last AND priority <> :priority
              ORDER BY job LIMIT :limit)

-- name: deferred
-- It counts when they are due.
UPDATE deferred SET priority = :priority
WHERE job IN (SELECT job FROM deferred WHERE job BETWEEN :run AND :last AND priority <> :priority
              ORDER BY job LIMIT :limit)

-- name: waiting
-- It counts when they are ready.
UPDATE waiting SET priority = :priority
WHERE job IN (SELECT job FROM waiting WHERE job BETWEEN :run AND :last AND priority <> :priority
              ORDER BY job LIMIT :limit)

-- name: running
-- It counts if they are tried again.
UPDATE running SET priority = :priority
WHERE job IN (SELECT job FROM running WHERE job BETWEEN :run AND :last AND priority <> :priority
              ORDER BY job LIMIT :limit)
