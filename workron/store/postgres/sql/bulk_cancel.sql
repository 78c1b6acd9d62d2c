-- bulk_cancel: cancel a bounded number of a run's queued jobs, and signal its running ones.
-- Waiting -> Cancelled (cancel)
-- Queued -> Cancelled (cancel)
CREATE OR REPLACE FUNCTION workron.bulk_cancel(_run bigint, _last bigint, _limit integer) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _now timestamptz := workron.now();
BEGIN
    PERFORM 1 FROM workron.running
    WHERE job BETWEEN _run AND _last AND signal IS DISTINCT FROM 'Cancel'
    ORDER BY job FOR UPDATE; -- guard: signal
    UPDATE workron.running SET signal = 'Cancel'
    WHERE job BETWEEN _run AND _last AND signal IS DISTINCT FROM 'Cancel';

    WITH queued AS MATERIALIZED (
        SELECT job FROM workron.ready WHERE job BETWEEN _run AND _last
        ORDER BY job LIMIT _limit FOR UPDATE
    ), deferred AS MATERIALIZED (
        SELECT job FROM workron.deferred WHERE job BETWEEN _run AND _last
        ORDER BY job LIMIT _limit FOR UPDATE
    ), blocked AS MATERIALIZED (
        SELECT w.job FROM workron.waiting w JOIN workron.job j ON j.id = w.job
        WHERE w.job BETWEEN _run AND _last AND j.kind = 'Job'
        ORDER BY w.job LIMIT _limit FOR UPDATE OF w
    ), from_ready AS (
        DELETE FROM workron.ready r USING queued q WHERE r.job = q.job
        RETURNING r.job, r.attempts, r.failures, r.losses
    ), from_deferred AS (
        DELETE FROM workron.deferred d USING deferred q WHERE d.job = q.job
        RETURNING d.job, d.attempts, d.failures, d.losses
    ), from_waiting AS (
        DELETE FROM workron.waiting w USING blocked q WHERE w.job = q.job
        RETURNING w.job, w.attempts, w.failures, w.losses
    ), taken AS (
        SELECT * FROM from_ready UNION ALL SELECT * FROM from_deferred
        UNION ALL SELECT * FROM from_waiting
    ), ended AS (
        INSERT INTO workron.done (job, state, finished_at, attempts, failures, losses)
        SELECT job, 'Cancelled', _now, attempts, failures, losses FROM taken
        RETURNING job
    ), external_dependency AS (
        DELETE FROM workron.external_dependency u USING from_waiting w WHERE u.downstream = w.job
    ), unmissed AS (
        DELETE FROM workron.awaiting_proof m USING from_waiting w WHERE m.job = w.job
    )
    INSERT INTO workron.unpropagated (job) SELECT job FROM ended;
END
$$;
