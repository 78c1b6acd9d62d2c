-- delete_run: delete the rows of an ended run, a bounded number of jobs at a time, the last ones first.

-- name: refusal
-- Why a run must stay; null: it can be deleted.
SELECT CASE
    WHEN run.generation IS NOT NULL THEN 'Owned'
    WHEN NOT EXISTS (SELECT 1 FROM done WHERE done.job = run.id)
         OR EXISTS (SELECT 1 FROM unpropagated WHERE unpropagated.job BETWEEN run.id AND run.last)
         OR EXISTS (SELECT 1 FROM bulk_update WHERE bulk_update.run = run.id) THEN 'Unfinished'
    WHEN EXISTS (
        SELECT 1 FROM edge
        WHERE edge.upstream = run.id AND edge.downstream NOT BETWEEN run.id AND run.last
          AND NOT EXISTS (SELECT 1 FROM done WHERE done.job = edge.downstream)) THEN 'Needed'
    END AS refusal
FROM run WHERE run.id = :run

-- name: clear_name
-- No other run can depend on it from now on.
DELETE FROM name
WHERE (namespace, kind, name) = (SELECT namespace, kind, name FROM run WHERE id = :run) AND run = :run

-- name: last_job
-- The last job that is left; null if the run is deleted.
SELECT max(job.id) AS job FROM run CROSS JOIN job ON job.id BETWEEN run.id AND run.last
WHERE run.id = :run

-- name: delete_{table} (output, result, attempt, deadline, awaiting_proof, done)
-- In the same transaction.
DELETE FROM {table} WHERE job BETWEEN :first AND :last

-- name: delete_upstream_edges
-- Of other runs too, which have ended.
DELETE FROM edge WHERE upstream BETWEEN :first AND :last

-- name: delete_downstream_edges
-- In the same transaction.
DELETE FROM edge WHERE downstream BETWEEN :first AND :last

-- name: delete_external_dependencies
-- Upstreams by name that were never submitted.
DELETE FROM external_dependency WHERE downstream BETWEEN :first AND :last

-- name: delete_specs
-- The specs of a run have ids in the range of its jobs.
DELETE FROM spec WHERE id BETWEEN :first AND :last

-- name: delete_jobs
-- In the same transaction.
DELETE FROM job WHERE id BETWEEN :first AND :last

-- name: finish
-- With its first job.
DELETE FROM run WHERE id = :run
