-- forget: have a worker's beats pass over what it held before the oldest claim that it still holds.
-- The entries of ended claims stand in the index of `running` for as long as anybody's transaction is
-- open. The row is locked, so that no claim is on its way that this does not see; where one is, a later
-- beat tries again. One that waits for the lock has its beat read after it, and no older one.
CREATE OR REPLACE FUNCTION workron.forget(_worker workron.worker) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _oldest bigint;
BEGIN
    PERFORM 1 FROM workron.worker WHERE id = _worker.id FOR UPDATE SKIP LOCKED; -- guard: since
    IF FOUND THEN
        SELECT r.beat INTO _oldest FROM workron.running r
        WHERE r.worker = _worker.id AND r.beat >= _worker.since ORDER BY r.beat LIMIT 1;
        UPDATE workron.worker SET since = coalesce(_oldest, _worker.beats - 1)
        WHERE id = _worker.id AND since < coalesce(_oldest, _worker.beats - 1);
    END IF;
END
$$;
