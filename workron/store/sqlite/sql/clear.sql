-- clear: empty the scratch sets, so that no verb finds what another one left.

-- name: report
-- Left by complete.
DELETE FROM temp.report

-- name: picked
-- Left by every bounded step.
DELETE FROM temp.picked

-- name: taken
-- Left by claim.
DELETE FROM temp.taken

-- name: fallen
-- Left by whatever ended claims.
DELETE FROM temp.fallen

-- name: moving
-- Left by whatever queued, deferred or held something.
DELETE FROM temp.moving

-- name: ended
-- Also emptied between the ends that are told now and those that are left for later.
DELETE FROM temp.ended

-- name: told
-- Left by whatever told waiting jobs of something.
DELETE FROM temp.told

-- name: bond
-- Also emptied between the runs of one submission.
DELETE FROM temp.bond
