-- marks: what was asked of the running jobs of a root, and is not in effect yet.

-- name: marks
-- A mark goes with its claim.
SELECT running.job, running.mark
FROM root JOIN running ON running.job BETWEEN root.id AND root.last
WHERE root.id = :root AND running.mark IS NOT NULL
ORDER BY running.job
