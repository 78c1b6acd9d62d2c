-- granted_pools: the pools that the operator has let workers into.
SELECT p.namespace, p.name FROM workron.pool p
WHERE p.role IS NOT NULL OR EXISTS (SELECT 1 FROM workron.token t WHERE t.pool = p.id AND t.operators);
