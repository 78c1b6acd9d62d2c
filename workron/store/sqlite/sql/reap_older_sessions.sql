-- reap_older_sessions: reap the older sessions of a worker name; this session proves that they are
-- dead. Those that registered later are left to their own heartbeats.
SELECT id FROM worker WHERE pool = :pool AND name = :name AND id < :worker ORDER BY id
