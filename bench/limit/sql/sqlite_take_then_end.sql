-- Repeated for each batch: one writer claims a batch of jobs and completes it, in one transaction.
-- Each statement moves the whole batch, and none returns a row to its caller.
BEGIN IMMEDIATE;
-- A claim id has the length of a UUID as text.
INSERT INTO running (job, worker, claim, pool, priority, attempt, failures, losses, fence, alone, claimed_at)
SELECT job, 1, lower(hex(randomblob(18))), pool, priority, attempts + 1, failures, losses, fence + 1, alone, :now
FROM ready WHERE pool = 1 AND alone = 0 ORDER BY priority DESC, job LIMIT :batch;
DELETE FROM ready WHERE job IN (SELECT job FROM running WHERE worker = 1);
INSERT INTO done (job, state, exit_code, finished_at, attempts, failures, losses, worker)
SELECT job, 'Succeeded', 0, :now, attempt, failures, losses, 'bench' FROM running WHERE worker = 1;
INSERT INTO attempt (job, attempt, claim, outcome, exit_code, worker, started_at, finished_at)
SELECT job, attempt, claim, 'Succeeded', 0, 'bench', claimed_at, :now FROM running WHERE worker = 1;
DELETE FROM running WHERE worker = 1;
COMMIT;
