-- sweeps: some runs whose cancel, hold or resume is not over.
SELECT run FROM workron.sweep ORDER BY run LIMIT 10;
