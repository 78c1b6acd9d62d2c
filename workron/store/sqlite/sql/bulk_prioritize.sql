-- bulk_prioritize: change the priority of a bounded number of a run's jobs.

-- name: {table} (ready, deferred, waiting, running)
-- It counts when the job is claimed next.
UPDATE {table} SET priority = :priority
WHERE job IN (SELECT job FROM {table} WHERE job BETWEEN :run AND :last AND priority <> :priority
              ORDER BY job LIMIT :limit)
