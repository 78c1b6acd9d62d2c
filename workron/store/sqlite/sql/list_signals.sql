-- list_signals: list signals to running jobs of a run that have not taken effect yet.
SELECT running.job, running.signal
FROM run JOIN running ON running.job BETWEEN run.id AND run.last
WHERE run.id = :run AND running.signal IS NOT NULL
ORDER BY running.job
