-- granted_pools: list the pools that were granted and not revoked.
SELECT p.namespace, p.name FROM workron.pool p
WHERE p.role IS NOT NULL OR EXISTS (SELECT 1 FROM workron.token t WHERE t.pool = p.id AND t.granted);
