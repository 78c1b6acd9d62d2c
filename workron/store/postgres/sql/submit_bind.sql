-- submit_bind: give the new runs their names, tie them to the upstreams and downstreams that stand
-- there now, and queue what waits for nothing; the last step of a submission, right before its commit.
CREATE OR REPLACE FUNCTION workron.submit_bind(_runs bigint[], _idle bigint[]) RETURNS void
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    _awaits boolean;
    _is_awaited boolean;
    _bond record;
    _upstream workron.done;
    _ended bigint[] := '{}';
    _tied bigint[] := '{}';
BEGIN
    UPDATE workron.name n SET run = r.id
    FROM (SELECT namespace, kind, name, max(id) AS id FROM workron.run
          WHERE id = ANY (_runs) GROUP BY namespace, kind, name) r
    WHERE (n.namespace, n.kind, n.name) = (r.namespace, r.kind, r.name);

    -- LIMIT keeps it from being read the other way round: all that is unbound, and its run.
    _awaits := EXISTS (SELECT 1 FROM workron.run r
                       CROSS JOIN LATERAL (SELECT 1 FROM workron.unbound u
                                           WHERE u.child BETWEEN r.id AND r.last LIMIT 1) u
                       WHERE r.id = ANY (_runs));
    _is_awaited := EXISTS (SELECT 1 FROM workron.unbound u JOIN workron.run r
                           ON (u.namespace, u.kind, u.name) = (r.namespace, r.kind, r.name)
                           JOIN workron.job j ON j.id = u.child
                           WHERE r.id = ANY (_runs) AND j.run <> ALL (_runs));
    -- Only a submission that both awaits and is awaited can close a cycle; two of them at once could
    -- each close half of one.
    IF _awaits AND _is_awaited THEN
        PERFORM 1 FROM workron.binding FOR UPDATE; -- guard: cycle
    END IF;

    -- Mostly it does neither, and what is not come to need not be planned in a session that is new.
    IF _awaits OR _is_awaited THEN
        FOR _bond IN
            WITH tied AS MATERIALIZED (
                SELECT u.* FROM workron.run r
                JOIN workron.unbound u ON (u.namespace, u.kind, u.name) = (r.namespace, r.kind, r.name)
                WHERE r.id = ANY (_runs)
                UNION
                SELECT u.* FROM workron.run r
                JOIN workron.unbound u ON u.child BETWEEN r.id AND r.last
                WHERE r.id = ANY (_runs)
            ), bound AS (
                DELETE FROM workron.unbound u USING tied t
                JOIN workron.name n USING (namespace, kind, name)
                JOIN workron.job j ON j.id = t.child
                WHERE (u.namespace, u.kind, u.name, u.child) = (t.namespace, t.kind, t.name, t.child)
                  AND n.run IS NOT NULL
                RETURNING n.run AS parent, u.child, u.condition, j.run
            )
            SELECT * FROM bound ORDER BY parent, child
        LOOP
            IF _bond.parent <> ALL (_runs) AND NOT workron.hold_still(_bond.parent) THEN
                SELECT * INTO STRICT _upstream FROM workron.done WHERE job = _bond.parent;
                UPDATE workron.waiting
                SET remaining = remaining - 1,
                    verdict = greatest(verdict, workron.weigh(_bond.condition, _upstream.state,
                                                              _upstream.reason))
                WHERE job = _bond.child;
                _ended := _ended || _bond.child;
            END IF;
            -- An ended upstream keeps its edge too: its result is an input, and people ask for it.
            INSERT INTO workron.edge (parent, child, condition)
            VALUES (_bond.parent, _bond.child, _bond.condition);
            IF _bond.run = ANY (_runs) THEN
                _tied := _tied || _bond.run;
            END IF;
        END LOOP;
        IF cardinality(_tied) > 0 THEN
            -- A cycle goes through a new run that waits for another one.
            PERFORM workron.refuse_cycle(_tied);
        END IF;
    END IF;
    IF cardinality(_ended || _idle) > 0 THEN
        PERFORM workron.decide(_ended || _idle);
    END IF;
END
$$;
