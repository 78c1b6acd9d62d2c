-- For pgbench, prepared: a client claims a batch of jobs and completes it, in one transaction.
BEGIN;
WITH picked AS (
    SELECT job FROM ready WHERE pool = 1 AND NOT alone
    ORDER BY priority DESC, job LIMIT :batch FOR UPDATE SKIP LOCKED
), taken AS (
    DELETE FROM ready r USING picked p WHERE r.job = p.job RETURNING r.*
)
INSERT INTO running (job, worker, claim, pool, priority, attempt, failures, losses, fence, alone, claimed_at)
SELECT job, :client_id::bigint, gen_random_uuid(), pool, priority, attempts + 1, failures, losses,
       fence + 1, alone, clock_timestamp()
FROM taken RETURNING job, claim, fence;
WITH taken AS (
    DELETE FROM running WHERE worker = :client_id::bigint RETURNING *
), ended AS (
    INSERT INTO done (job, state, exit_code, finished_at, attempts, failures, losses, worker)
    SELECT job, 'Succeeded', 0, clock_timestamp(), attempt, failures, losses, 'bench' FROM taken
)
INSERT INTO attempt (job, attempt, claim, outcome, exit_code, worker, started_at, finished_at)
SELECT job, attempt, claim, 'Succeeded', 0, 'bench', claimed_at, clock_timestamp()
FROM taken RETURNING job;
END;
