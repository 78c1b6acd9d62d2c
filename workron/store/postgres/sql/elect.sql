-- elect: become or stay the maintainer; no row comes back while another one's lease runs.
INSERT INTO workron.leader AS l (single, holder, expires)
VALUES (true, $1, workron.now() + make_interval(secs => $2))
ON CONFLICT (single) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
WHERE l.holder = excluded.holder OR l.expires < workron.now()
RETURNING true AS elected;
