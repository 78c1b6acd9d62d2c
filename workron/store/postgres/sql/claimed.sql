-- claimed: all that a worker needs to know of those claims under these ids that are its own.
CREATE OR REPLACE FUNCTION workron.claimed(_worker bigint, _claims uuid[])
RETURNS TABLE (
    job bigint, claim uuid, attempt integer, failures integer, losses integer, fence bigint,
    namespace text, root text, name text, index integer, item jsonb, spec jsonb, inputs jsonb
)
LANGUAGE plpgsql STABLE
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT c.job, c.claim, c.attempt, c.failures, c.losses, c.fence,
           r.namespace, r.name, j.name, j.index, j.item, s.body,
           CASE WHEN j.feeds_inputs THEN workron.inputs_of(j.id) END
    FROM workron.running c
    JOIN workron.job j ON j.id = c.job
    JOIN workron.root r ON r.id = j.root
    JOIN workron.spec s ON s.id = j.spec
    WHERE c.claim = ANY (_claims) AND c.worker = _worker
    ORDER BY c.priority DESC, c.job;
END
$$;
