-- clear_scratch: empty the temporary tables before an operation.

-- name: attempt_report
-- Filled by complete.
DELETE FROM temp.attempt_report

-- name: selected_job
-- Filled by bounded steps.
DELETE FROM temp.selected_job

-- name: new_claim
-- Filled by claim.
DELETE FROM temp.new_claim

-- name: ended_claim
-- Filled by operations that end claims.
DELETE FROM temp.ended_claim

-- name: unblocked_job
-- Filled by operations that queue, defer or suspend jobs.
DELETE FROM temp.unblocked_job

-- name: ended_job
-- Also emptied between ends that are propagated now and ends that are left for later.
DELETE FROM temp.ended_job

-- name: downstream_update
-- Filled by operations that propagate ends.
DELETE FROM temp.downstream_update

-- name: new_edge
-- Also emptied between the runs of one submission.
DELETE FROM temp.new_edge
