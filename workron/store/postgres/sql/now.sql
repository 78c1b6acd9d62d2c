-- now: return the time; functions use no other clock.
CREATE OR REPLACE FUNCTION workron.now() RETURNS timestamptz
LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT clock_timestamp() $$;
