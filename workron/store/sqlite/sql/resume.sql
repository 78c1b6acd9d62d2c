-- resume: take the hold off a root, whether it came by hold or with the submission.
-- Waiting -> Queued (ready)

-- name: ask
-- From here on its jobs may become ready.
UPDATE root SET held = 0
WHERE id = :root AND NOT cancelled AND NOT EXISTS (SELECT 1 FROM done WHERE done.job = :root)

-- name: unmark
-- What comes back from running is not held any more.
UPDATE running SET mark = NULL WHERE job BETWEEN :root AND :last AND mark = 'Hold'

-- name: tell
-- A bounded number is told that one thing less is to be waited for.
INSERT INTO temp.told (child, ends, verdict)
SELECT job, 1, 0 FROM waiting WHERE job BETWEEN :root AND :last AND held
ORDER BY job LIMIT :limit

-- name: unhold
-- So that none is told twice.
UPDATE waiting SET held = 0 WHERE job IN (SELECT child FROM temp.told)
