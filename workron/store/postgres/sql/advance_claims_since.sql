-- advance_claims_since: advance `worker.claims_since` to the oldest claim that a worker holds.
-- Index entries of ended claims stay in `running_worker` while any transaction is open, and
-- heartbeats skip those before `claims_since`. The row is locked, so that no claim is in progress
-- that this does not see; if it is locked, a later heartbeat tries again. A claim that waits for this
-- lock reads the heartbeat counter after it.
CREATE OR REPLACE FUNCTION workron.advance_claims_since(_worker workron.worker) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _oldest bigint;
BEGIN
    PERFORM 1 FROM workron.worker WHERE id = _worker.id FOR UPDATE SKIP LOCKED; -- guard: claims_since
    IF FOUND THEN
        SELECT r.heartbeat INTO _oldest FROM workron.running r
        WHERE r.worker = _worker.id AND r.heartbeat >= _worker.claims_since ORDER BY r.heartbeat LIMIT 1;
        UPDATE workron.worker SET claims_since = coalesce(_oldest, _worker.heartbeats - 1)
        WHERE id = _worker.id AND claims_since < coalesce(_oldest, _worker.heartbeats - 1);
    END IF;
END
$$;
