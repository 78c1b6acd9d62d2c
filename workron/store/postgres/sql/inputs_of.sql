-- inputs_of: the results of a job's upstreams by name; an array's is the list of its elements'.
CREATE OR REPLACE FUNCTION workron.inputs_of(_job bigint) RETURNS jsonb
LANGUAGE sql STABLE
AS $$
    SELECT jsonb_object_agg(name, body) FROM (
        SELECT p.name, r.body
        FROM workron.edge e
        JOIN workron.job p ON p.id = e.parent
        JOIN workron.result r ON r.job = p.id
        WHERE e.child = _job
        UNION ALL
        SELECT p.name, jsonb_agg(r.body ORDER BY m.index)
        FROM workron.edge e
        JOIN workron.job p ON p.id = e.parent AND p.kind = 'Array'
        JOIN workron.job m ON m.member_of = p.id AND m.bearing = 'Member'
        LEFT JOIN workron.result r ON r.job = m.id
        WHERE e.child = _job
        GROUP BY p.name
        HAVING count(r.body) > 0
    ) upstream
$$;
