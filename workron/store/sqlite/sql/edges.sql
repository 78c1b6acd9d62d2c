-- edges: what the jobs of a root wait for.

-- name: edges
-- Other roots' jobs stand among the upstreams.
SELECT edge.parent AS upstream, edge.child AS downstream, edge.condition
FROM root CROSS JOIN edge ON edge.child BETWEEN root.id AND root.last
WHERE root.id = :root ORDER BY edge.child, edge.parent
