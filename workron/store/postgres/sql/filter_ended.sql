-- filter_ended: return those of some jobs that have ended; waiting callers run it again and again.
CREATE OR REPLACE FUNCTION workron.filter_ended(_jobs bigint[]) RETURNS SETOF bigint
LANGUAGE sql STABLE
AS $$
    SELECT p.job FROM unnest(_jobs) w(job) JOIN workron.done p ON p.job = w.job
$$;
