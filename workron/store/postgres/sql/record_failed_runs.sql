-- record_failed_runs: record the runs with `failFast` in which a task has failed; `cancel_failed_runs`
-- cancels them.
-- `_groups` are those with an end that `_verdicts` evaluates; verdict 5 is FAILED. An array that may
-- have failed elements counts when it has ended, and `finally` does not count.
CREATE OR REPLACE FUNCTION workron.record_failed_runs(_groups bigint[], _verdicts smallint[]) RETURNS void
LANGUAGE sql
AS $$
    INSERT INTO workron.failed_run (run)
    SELECT DISTINCT r.id
    FROM unnest(_groups, _verdicts) AS t(id, verdict)
    JOIN workron.job g ON g.id = ANY (ARRAY[t.id])
    JOIN workron.run r ON r.id = ANY (ARRAY[g.run])
    WHERE t.verdict = 5 AND r.fail_fast AND NOT r.cancelled AND coalesce(g.id < r.finally_from, true)
      AND CASE g.kind WHEN 'Array' THEN g.max_failures IS NULL AND g.group_condition = 'Task'
                      WHEN 'Workflow' THEN r.finally_from IS NULL
                      ELSE true END
$$;
