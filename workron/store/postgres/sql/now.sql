-- now: the only clock that a verb reads.
CREATE OR REPLACE FUNCTION workron.now() RETURNS timestamptz
LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$ SELECT clock_timestamp() $$;
