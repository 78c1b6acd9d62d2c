-- list_signals: what was asked of the running jobs of a run, and is not in effect yet.

-- name: list_signals
-- A mark goes with its claim.
SELECT running.job, running.signal
FROM run JOIN running ON running.job BETWEEN run.id AND run.last
WHERE run.id = :run AND running.signal IS NOT NULL
ORDER BY running.job
