-- submit_link_runs: set the names of new runs, link them to upstreams and downstreams, and queue jobs
-- that wait for nothing; the last step of a submission.
CREATE OR REPLACE FUNCTION workron.submit_link_runs(_runs bigint[], _idle bigint[]) RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
    _has_external boolean;
    _is_external boolean;
    _dependency record;
    _upstream workron.done;
    _ended bigint[] := '{}';
    _linked bigint[] := '{}';
BEGIN
    UPDATE workron.name n SET run = r.id
    FROM (SELECT namespace, kind, name, max(id) AS id FROM workron.run
          WHERE id = ANY (_runs) GROUP BY namespace, kind, name) r
    WHERE (n.namespace, n.kind, n.name) = (r.namespace, r.kind, r.name);

    -- LIMIT keeps the planner from starting with all external dependencies.
    _has_external := EXISTS (SELECT 1 FROM workron.run r
                       CROSS JOIN LATERAL (SELECT 1 FROM workron.external_dependency u
                                           WHERE u.downstream BETWEEN r.id AND r.last LIMIT 1) u
                       WHERE r.id = ANY (_runs));
    _is_external := EXISTS (SELECT 1 FROM workron.external_dependency u JOIN workron.run r
                           ON (u.namespace, u.kind, u.name) = (r.namespace, r.kind, r.name)
                           JOIN workron.job j ON j.id = u.downstream
                           WHERE r.id = ANY (_runs) AND j.run <> ALL (_runs));
    -- Only a submission that both has and is an external dependency can close a cycle; two at once
    -- could close half of one each.
    IF _has_external AND _is_external THEN
        PERFORM 1 FROM workron.submit_lock FOR UPDATE; -- guard: cycle
    END IF;

    -- Most submissions do neither, and a new session does not plan statements that it does not reach.
    IF _has_external OR _is_external THEN
        FOR _dependency IN
            WITH candidate AS MATERIALIZED (
                SELECT u.* FROM workron.run r
                JOIN workron.external_dependency u ON (u.namespace, u.kind, u.name) = (r.namespace, r.kind, r.name)
                WHERE r.id = ANY (_runs)
                UNION
                SELECT u.* FROM workron.run r
                JOIN workron.external_dependency u ON u.downstream BETWEEN r.id AND r.last
                WHERE r.id = ANY (_runs)
            ), linked AS (
                DELETE FROM workron.external_dependency u USING candidate t
                JOIN workron.name n USING (namespace, kind, name)
                JOIN workron.job j ON j.id = t.downstream
                WHERE (u.namespace, u.kind, u.name, u.downstream) = (t.namespace, t.kind, t.name, t.downstream)
                  AND n.run IS NOT NULL
                RETURNING n.run AS upstream, u.downstream, u.condition, j.run
            )
            SELECT * FROM linked ORDER BY upstream, downstream
        LOOP
            IF _dependency.upstream <> ALL (_runs) AND NOT workron.lock_upstream(_dependency.upstream) THEN
                SELECT * INTO STRICT _upstream FROM workron.done WHERE job = _dependency.upstream;
                UPDATE workron.waiting
                SET remaining = remaining - 1,
                    verdict = greatest(verdict, workron.evaluate(_dependency.condition, _upstream.state,
                                                              _upstream.reason))
                WHERE job = _dependency.downstream;
                _ended := _ended || _dependency.downstream;
            END IF;
            -- An ended upstream has an edge too: its result is an input, and users look at it.
            INSERT INTO workron.edge (upstream, downstream, condition)
            VALUES (_dependency.upstream, _dependency.downstream, _dependency.condition);
            IF _dependency.run = ANY (_runs) THEN
                _linked := _linked || _dependency.run;
            END IF;
        END LOOP;
        IF cardinality(_linked) > 0 THEN
            -- A cycle contains a new run that waits for another one.
            PERFORM workron.reject_cycle(_linked);
        END IF;
    END IF;
    IF cardinality(_ended || _idle) > 0 THEN
        PERFORM workron.resolve_waiting(_ended || _idle);
    END IF;
END
$$;
