-- promote: move deferred jobs that are due to ready.
-- Waiting -> Queued (ready)
CREATE OR REPLACE FUNCTION workron.promote(_limit integer) RETURNS integer
LANGUAGE plpgsql
AS $$
DECLARE
    _moved integer;
BEGIN
    WITH due AS MATERIALIZED (
        SELECT job FROM workron.deferred WHERE due <= workron.now()
        ORDER BY due LIMIT _limit FOR UPDATE SKIP LOCKED
    ), taken AS (
        DELETE FROM workron.deferred d USING due WHERE d.job = due.job RETURNING d.*
    )
    INSERT INTO workron.ready (job, pool, priority, attempts, failures, losses, fence, alone)
    SELECT job, pool, priority, attempts, failures, losses, fence, alone FROM taken;
    GET DIAGNOSTICS _moved = ROW_COUNT;
    RETURN _moved;
END
$$;
