-- filter_ended: return those of some jobs that have ended; waiting callers run it again and again.
SELECT done.job FROM json_each(:jobs) AS wanted CROSS JOIN done ON done.job = wanted.value
