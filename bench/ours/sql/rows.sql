-- Functions that insert rows directly: those of a submission, and those of a run that has ended. A run
-- is a workflow of no-op jobs; the ids begin at the given one.

CREATE SCHEMA bench;

CREATE FUNCTION bench.plant(_first bigint, _workflows integer, _jobs integer) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    _pool integer := (SELECT id FROM workron.pool WHERE (namespace, name) = ('default', 'default'));
BEGIN
    INSERT INTO workron.run (id, last, uid, namespace, kind, name, digest, submitted_at, metadata)
    SELECT id, id + _jobs, gen_random_uuid(), 'default', 'Workflow', 'bench-' || id, 'digest',
           workron.now(), '{}'
    FROM generate_series(_first, _first + (_workflows - 1) * (_jobs + 1)::bigint, _jobs + 1) id;
    INSERT INTO workron.spec (id, body)
    SELECT id + number, CASE number WHEN 0 THEN '{}' ELSE '{"command": "true"}' END
    FROM generate_series(_first, _first + (_workflows - 1) * (_jobs + 1)::bigint, _jobs + 1) id,
         generate_series(0, 1) number;
    INSERT INTO workron.job (id, run, kind, spec, name, group_id, group_condition, pool, priority,
                             feeds_inputs, max_losses, needs_proof)
    SELECT id, id - number, CASE number WHEN 0 THEN 'Workflow' ELSE 'Job' END,
           id - number + least(number, 1), 't' || number,
           CASE WHEN number > 0 THEN id - number END, CASE WHEN number > 0 THEN 'Task' END,
           _pool, 0, false, 5, false
    FROM (SELECT id, (id - _first) % (_jobs + 1) AS number
          FROM generate_series(_first, _first + _workflows * (_jobs + 1)::bigint - 1) id) job;
END
$$;

CREATE FUNCTION bench.queue(_first bigint, _workflows integer, _jobs integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM bench.plant(_first, _workflows, _jobs);
    INSERT INTO workron.waiting (job, remaining, wide, priority)
    SELECT id, _jobs, true, 0
    FROM generate_series(_first, _first + (_workflows - 1) * (_jobs + 1)::bigint, _jobs + 1) id;
    INSERT INTO workron.ready (job, pool, priority)
    SELECT j.id, j.pool, j.priority FROM workron.job j WHERE j.id >= _first AND j.kind = 'Job';
END
$$;

CREATE FUNCTION bench.finish(_first bigint, _workflows integer, _jobs integer) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM bench.plant(_first, _workflows, _jobs);
    INSERT INTO workron.attempt (job, attempt, claim, outcome, exit_code, worker, started_at,
                                 finished_at)
    SELECT j.id, 1, gen_random_uuid(), 'Succeeded', 0, 'bench', workron.now(), workron.now()
    FROM workron.job j WHERE j.id >= _first AND j.kind = 'Job';
    INSERT INTO workron.done (job, state, exit_code, finished_at, attempts, failures, losses, worker)
    SELECT j.id, 'Succeeded', 0, workron.now(), 1, 0, 0, 'bench'
    FROM workron.job j WHERE j.id >= _first;
END
$$;
