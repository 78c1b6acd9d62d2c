-- sweeps: some roots whose cancel, hold or resume is not over.
SELECT root FROM workron.sweep ORDER BY root LIMIT 10;
