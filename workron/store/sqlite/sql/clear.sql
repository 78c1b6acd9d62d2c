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
-- Also emptied by place, which may run twice in a verb.
DELETE FROM temp.moving

-- name: ended
-- Also emptied once the ends were told.
DELETE FROM temp.ended

-- name: told
-- Also emptied once the told jobs were decided.
DELETE FROM temp.told

-- name: bond
-- Also emptied between the roots of one submission.
DELETE FROM temp.bond
