-- clear_scratch: empty the temporary tables, before an operation or between its steps.

-- name: {table} (attempt_report, selected_job, new_claim, ended_claim, unblocked_job, ended_job,
--                downstream_update, new_edge)
-- Cheap when the table is empty.
DELETE FROM temp.{table}
