-- edges: what the jobs of a run wait for.
SELECT e.parent AS upstream, e.child AS downstream, e.condition
FROM workron.run r JOIN workron.edge e ON e.child BETWEEN r.id AND r.last
WHERE r.id = $1
ORDER BY e.child, e.parent;
