-- filter_ended: which of some jobs have ended; as cheap as it can be, for who waits asks it again and again.
CREATE OR REPLACE FUNCTION workron.filter_ended(_jobs bigint[]) RETURNS SETOF bigint
LANGUAGE sql STABLE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
    SELECT p.job FROM unnest(_jobs) w(job) JOIN workron.done p ON p.job = w.job
$$;
