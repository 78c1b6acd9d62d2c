-- evaluate_array: return the verdict of an ended array in which some elements may fail.
-- An element that was skipped because its upstream failed counts as a failure. Verdict 5 is FAILED, 3
-- is UPSTREAM_FAILED.
CREATE OR REPLACE FUNCTION workron.evaluate_array(_array bigint, _max_failures integer) RETURNS smallint
LANGUAGE sql STABLE
AS $$
    SELECT CASE WHEN count(*) FILTER (WHERE d.verdict IN (3, 5)) > _max_failures THEN max(d.verdict)
                ELSE coalesce(max(d.verdict) FILTER (WHERE d.verdict NOT IN (3, 5)), 0::smallint) END
    FROM workron.job j
    -- OFFSET 0 keeps it a lookup by key for each element, also in a plan made when there were few.
    CROSS JOIN LATERAL (
        SELECT workron.evaluate('Member', state, reason) AS verdict
        FROM workron.done WHERE job = j.id OFFSET 0
    ) d
    WHERE j.group_id = _array AND j.group_condition = 'Member'
$$;
