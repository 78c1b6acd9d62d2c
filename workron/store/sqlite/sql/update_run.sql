-- update_run: apply the mutable fields of a cluster object to its run, unless its generation is not
-- newer.

-- name: set_generation
-- Whatever else it says.
UPDATE run SET generation = :generation WHERE id = :run AND generation < :generation

-- name: current
-- The current fields; an ended run does not change.
SELECT suspended, cancelled, forced, priority FROM run
WHERE id = :run AND NOT EXISTS (SELECT 1 FROM done WHERE done.job = :run)

-- name: set_fields
-- From here on jobs that become ready follow it.
UPDATE run SET cancelled = :cancelled, cancel_requested = max(cancel_requested, :requested),
               forced = :forced, suspended = :suspended, priority = :priority
WHERE id = :run
