-- evaluate: return the verdict of one end under one condition, as `core.verdict.evaluate` does; a
-- test compares them.
CREATE OR REPLACE FUNCTION workron.evaluate(condition text, state text, reason text) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT (CASE
        WHEN condition = 'Finished' THEN 0
        WHEN state = 'Skipped' AND condition IN ('Task', 'AllowedTask') THEN 0
        WHEN state = 'Skipped' THEN
            CASE reason WHEN 'NotNeeded' THEN 1 WHEN 'UpstreamCancelled' THEN 2
                        WHEN 'UpstreamFailed' THEN 3 END
        WHEN condition = 'Succeeded' THEN
            CASE state WHEN 'Succeeded' THEN 0 WHEN 'Failed' THEN 3 WHEN 'Cancelled' THEN 2 END
        WHEN condition = 'Failed' THEN
            CASE state WHEN 'Failed' THEN 0 ELSE 1 END
        WHEN state = 'Succeeded' THEN 0
        WHEN state = 'Cancelled' THEN 4
        WHEN condition = 'AllowedTask' THEN 0
        ELSE 5
    END)::smallint
$$;
