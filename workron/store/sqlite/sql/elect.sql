-- elect: become or stay the maintainer; no row is returned while another holder's lease is valid. A
-- lease that expires later than the requested one was granted before the clock was set back, and is
-- ignored.
INSERT INTO leader (only, holder, expires) VALUES (1, :holder, :now + CAST(1000000 * :lease_seconds AS INTEGER))
ON CONFLICT (only) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
WHERE leader.holder = excluded.holder OR leader.expires < :now
   OR leader.expires > excluded.expires
