-- list_signals: what was asked of the running jobs of a run, and is not in effect yet.

-- name: list_signals
-- A mark goes with its claim.
SELECT running.job, running.mark
FROM run JOIN running ON running.job BETWEEN run.id AND run.last
WHERE run.id = :run AND running.mark IS NOT NULL
ORDER BY running.job
