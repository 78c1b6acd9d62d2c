-- elect: become or stay the maintainer; no row comes back while another one's lease runs.
-- A lease that ends later than one asked for now is from before the clock was put back; it binds nobody.
INSERT INTO workron.leader AS l (single, holder, expires)
VALUES (true, $1, workron.now() + make_interval(secs => $2))
ON CONFLICT (single) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
WHERE l.holder = excluded.holder OR l.expires < workron.now() OR l.expires > excluded.expires
RETURNING true AS elected;
