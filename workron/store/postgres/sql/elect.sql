-- elect: become or stay the maintainer; no row is returned while another holder's lease is valid.
-- A lease that expires later than the requested one was granted before the clock was set back, and is
-- ignored.
INSERT INTO workron.leader AS l (single, holder, expires)
VALUES (true, $1, workron.now() + make_interval(secs => $2))
ON CONFLICT (single) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
WHERE l.holder = excluded.holder OR l.expires < workron.now() OR l.expires > excluded.expires
RETURNING true AS elected;
