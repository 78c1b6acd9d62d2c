-- filter_ended: which of some jobs have ended.

-- name: filter_ended
-- As cheap as it can be: who waits asks it again and again.
SELECT done.job FROM json_each(:jobs) AS wanted CROSS JOIN done ON done.job = wanted.value
