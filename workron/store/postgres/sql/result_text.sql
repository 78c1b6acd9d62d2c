-- result_text: return a job's result as JSON; the result of an array is the list of its elements'
-- results, with null for none.
CREATE OR REPLACE FUNCTION workron.result_text(_job bigint) RETURNS text
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(
        (SELECT body FROM workron.result WHERE job = _job),
        (SELECT '[' || string_agg(coalesce(r.body, 'null'), ', ' ORDER BY m.index) || ']'
         FROM workron.job m LEFT JOIN workron.result r ON r.job = m.id
         WHERE m.group_id = _job AND m.group_condition = 'Member'
         HAVING count(r.body) > 0))
$$;
