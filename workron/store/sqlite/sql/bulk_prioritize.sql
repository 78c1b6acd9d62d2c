-- bulk_prioritize: have a bounded number of a run's jobs go by another priority, wherever they are.

-- name: ready
-- They stand elsewhere in the walk then.
UPDATE ready SET priority = :priority
WHERE job IN (SELECT job FROM ready WHERE job BETWEEN :run AND :last AND priority <> :priority
              ORDER BY job LIMIT :limit)

-- name: deferred
-- It counts once they are due.
UPDATE deferred SET priority = :priority
WHERE job IN (SELECT job FROM deferred WHERE job BETWEEN :run AND :last AND priority <> :priority
              ORDER BY job LIMIT :limit)

-- name: waiting
-- It counts once they wait for nothing.
UPDATE waiting SET priority = :priority
WHERE job IN (SELECT job FROM waiting WHERE job BETWEEN :run AND :last AND priority <> :priority
              ORDER BY job LIMIT :limit)

-- name: running
-- It counts where they are tried again.
UPDATE running SET priority = :priority
WHERE job IN (SELECT job FROM running WHERE job BETWEEN :run AND :last AND priority <> :priority
              ORDER BY job LIMIT :limit)
