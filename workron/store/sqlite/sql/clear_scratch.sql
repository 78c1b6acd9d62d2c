-- clear_scratch: empty the scratch sets, so that no verb finds what another one left.

-- name: attempt_report
-- Left by complete.
DELETE FROM temp.attempt_report

-- name: selected_job
-- Left by every bounded step.
DELETE FROM temp.selected_job

-- name: new_claim
-- Left by claim.
DELETE FROM temp.new_claim

-- name: ended_claim
-- Left by whatever ended claims.
DELETE FROM temp.ended_claim

-- name: unblocked_job
-- Left by whatever queued, deferred or held something.
DELETE FROM temp.unblocked_job

-- name: ended_job
-- Also emptied between the ends that are told now and those that are left for later.
DELETE FROM temp.ended_job

-- name: downstream_update
-- Left by whatever told waiting jobs of something.
DELETE FROM temp.downstream_update

-- name: new_edge
-- Also emptied between the runs of one submission.
DELETE FROM temp.new_edge
