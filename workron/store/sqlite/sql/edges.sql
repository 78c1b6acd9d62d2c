-- edges: what the jobs of a run wait for.

-- name: edges
-- Other runs' jobs stand among the upstreams.
SELECT edge.parent AS upstream, edge.child AS downstream, edge.condition
FROM run CROSS JOIN edge ON edge.child BETWEEN run.id AND run.last
WHERE run.id = :run ORDER BY edge.child, edge.parent
