-- elect: become or stay the maintainer; nothing changes while another one's lease runs.

-- name: elect
-- Two at once are harmless: the lease only saves work. One that ends later than one asked for now is
-- from before the clock was put back; it binds nobody.
INSERT INTO leader (only, holder, expires) VALUES (1, :holder, :expires)
ON CONFLICT (only) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
WHERE leader.holder = excluded.holder OR leader.expires < :now
   OR leader.expires > excluded.expires
