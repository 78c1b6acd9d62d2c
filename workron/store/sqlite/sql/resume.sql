-- resume: take the hold off a run, whether it came by hold or with the submission.
-- Waiting -> Queued (ready)

-- name: ask
-- From here on its jobs may become ready.
UPDATE run SET held = 0
WHERE id = :run AND NOT cancelled AND NOT EXISTS (SELECT 1 FROM done WHERE done.job = :run)

-- name: unmark
-- What comes back from running is not held any more.
UPDATE running SET mark = NULL WHERE job BETWEEN :run AND :last AND mark = 'Hold'

-- name: tell
-- A bounded number is told that one thing less is to be waited for.
INSERT INTO temp.told (child, ends, verdict)
SELECT job, 1, 0 FROM waiting WHERE job BETWEEN :run AND :last AND held
ORDER BY job LIMIT :limit

-- name: unhold
-- So that none is told twice.
UPDATE waiting SET held = 0 WHERE job IN (SELECT child FROM temp.told)
