"""A database with a million ended and a million waiting jobs, and what each operation reads in it.

The server counts what a call reads, within its transaction: the sequential scans of each table, the
searches of each index, and the rows and blocks. So the tests check the plans of the installed
functions with their settings, in a new session and in one that planned them with empty tables.
"""

import dataclasses
import uuid
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from tests.store.behaviour import plans
from tests.store.behaviour.worker import mint, mint_refs, report_on
from tests.store.postgres.stage import Stage, WorkerActor
from workron.core.plan import Kind, Plan
from workron.store import types

FINISHED = 1_000_000
WAITING = 1_000_000
LATER = 100_000

# Before a session plans: a change of a table's definition would make it plan again.
_PREPARE = """
    DO $$
    DECLARE _name text;
    BEGIN
        FOR _name IN SELECT oid::regclass FROM pg_class
            WHERE relnamespace = 'workron'::regnamespace AND relkind = 'r'
        LOOP
            EXECUTE format('ALTER TABLE %s SET UNLOGGED, SET (autovacuum_enabled = off)', _name);
        END LOOP;
    END $$;
"""
# In order of their ids: ended, waiting, ready and deferred jobs, a hundred in each run; some of
# the ended ones also have a row in `running`, on a hundred workers. Each ready job and some ended
# ones have ten downstreams; all other edges are between waiting jobs. Ten of the waiting runs are
# workflows, in a namespace of their own.
_LOAD = f"""
    CREATE TABLE bounds AS
    SELECT 1000 AS first, 1000 + {FINISHED} AS waiting, 1000 + {FINISHED + WAITING} AS ready,
           6000 + {FINISHED + WAITING} AS deferred, 6000 + {FINISHED + WAITING + LATER} AS last,
           int4range({FINISHED + WAITING // 2}, {FINISHED + WAITING // 2 + 1000}) AS flows;

    INSERT INTO workron.spec SELECT i, '{{}}' FROM bounds, generate_series(first, last, 100) i;
    INSERT INTO workron.run (id, last, uid, namespace, kind, name, digest, submitted_at, metadata,
                             cancelled, suspended, priority, generation)
    SELECT i, i + 99, gen_random_uuid(), CASE WHEN i <@ flows THEN 'flows' ELSE 'large' END,
           CASE WHEN i <@ flows THEN 'Workflow' ELSE 'Job' END, 'run' || i, '', now(), '{{}}',
           false, false, 0, 1
    FROM bounds, generate_series(first, last, 100) i;
    INSERT INTO workron.name
    SELECT 'large', 'Job', 'run' || i, i FROM bounds, generate_series(first, last, 100) i;
    INSERT INTO workron.job (id, run, kind, spec, name, pool, priority, feeds_inputs, max_losses,
                             needs_proof)
    SELECT i, i / 100 * 100, CASE WHEN i % 100 = 0 AND i <@ flows THEN 'Workflow' ELSE 'Job' END,
           i / 100 * 100, 'job', pool.id, 0, true, 5, false
    FROM workron.pool, bounds, generate_series(first, last - 1) i;

    INSERT INTO workron.done (job, state, exit_code, finished_at, attempts, failures, losses)
    SELECT i, 'Succeeded', 0, now(), 1, 0, 0 FROM bounds, generate_series(first, waiting - 1) i;
    INSERT INTO workron.attempt
    SELECT i, 1, gen_random_uuid(), 'Succeeded', NULL, 0, 'worker', now(), now()
    FROM bounds, generate_series(waiting - {LATER}, waiting - 1) i;
    INSERT INTO workron.unpropagated SELECT i FROM bounds, generate_series(first, first + 999) i;
    INSERT INTO workron.waiting (job, remaining, wide, priority)
    SELECT i, 2, false, 0 FROM bounds, generate_series(waiting, ready - 1) i;
    INSERT INTO workron.edge
    SELECT CASE WHEN n < 50000 THEN ready + n / 10 WHEN n < 60000 THEN first + (n - 50000) / 10
           ELSE waiting + n / 10 END, waiting + n, 'Succeeded'
    FROM bounds, generate_series(0, {WAITING} - 1) n;
    INSERT INTO workron.external_dependency
    SELECT waiting + n, 'large', 'Job', 'never' || n, 'Succeeded'
    FROM bounds, generate_series(0, {LATER} - 1) n;
    INSERT INTO workron.ready (job, pool, priority)
    SELECT i, pool.id, i % 3 FROM workron.pool, bounds, generate_series(ready, deferred - 1) i;
    INSERT INTO workron.running
    SELECT first + n, -n % 100, 0, gen_random_uuid(), pool.id, 0, 1, 0, 0, 0, false, NULL, now()
    FROM workron.pool, bounds, generate_series(0, {LATER} / 5 - 1) n;
    INSERT INTO workron.deferred (job, due, reason, pool, priority)
    SELECT i, now() + (i - deferred - 1000) * interval '1 second', 'Backoff', pool.id, 0
    FROM workron.pool, bounds, generate_series(deferred, last - 1) i;
    INSERT INTO workron.deadline
    SELECT i, now() + (i - deferred - 1000) * interval '1 second'
    FROM bounds, generate_series(deferred, last - 1) i;
"""
_COUNTERS = """
    SELECT relname, relkind::text, pg_stat_get_xact_numscans(oid),
           pg_stat_get_xact_tuples_returned(oid), pg_stat_get_xact_blocks_fetched(oid)
    FROM pg_class WHERE relnamespace = 'workron'::regnamespace AND relkind IN ('r', 'i')
"""


@dataclasses.dataclass(frozen=True)
class ReadCost:
    """The rows, blocks, scans and searches of a call."""

    read_through: frozenset[str]
    """Tables that were read from end to end."""
    searched: frozenset[str]
    """Indexes that were searched."""
    rows: int
    """Rows and index entries that were looked at."""
    blocks: int


ReadCosts = Mapping[tuple[str, str], ReadCost]


async def _counters(hand: WorkerActor) -> dict[tuple[str, str], tuple[int, int, int]]:
    rows = await hand.store.connection.fetch(_COUNTERS)
    return {(name, kind): (scans, seen, blocks) for name, kind, scans, seen, blocks in rows}


async def _read_cost(hand: WorkerActor, call: Callable[[], Awaitable[Any]]) -> tuple[Any, ReadCost]:
    before = await _counters(hand)
    answer = await call()
    spent = {
        key: tuple(map(int.__sub__, after, before[key]))
        for key, after in (await _counters(hand)).items()
    }
    scanned = {key for key, (scans, _, _) in spent.items() if scans}
    return answer, ReadCost(
        frozenset(name for name, kind in scanned if kind == "r"),
        frozenset(name for name, kind in scanned if kind == "i"),
        sum(rows for _, rows, _ in spent.values()),
        sum(blocks for _, _, blocks in spent.values()),
    )


async def _spend(hand: WorkerActor, run: Any) -> dict[str, ReadCost]:
    """Call each operation once, after the previous ones, and roll everything back."""
    store, key = hand.store, hand.session.key
    read_costs: dict[str, ReadCost] = {}

    async def note(verb: str, call: Callable[[], Awaitable[Any]]) -> Any:
        answer, read_costs[verb] = await _read_cost(hand, call)
        return answer

    await hand.begin()
    claimed = await note("claim", lambda: store.claim(key, mint(10)))
    ends = [report_on(one, result=1, output=b"text") for one in claimed]
    again = (await note("complete", lambda: store.complete(key, ends, mint(10)))).claimed
    rights = [one.ref for one in again]
    await note("report late", lambda: store.complete(key, ends))
    await note("heartbeat", lambda: store.heartbeat(key))
    if rights:
        await note("append_output", lambda: store.append_output(key, rights[0], 0, b"text"))
    await note("release", lambda: store.release(key, rights[:5]))
    await note("release late", lambda: store.release(key, rights[:5] + mint_refs(5)))
    await note("promote", lambda: store.promote(100))
    await note("expire", lambda: store.expire(100))
    await note("propagate", lambda: store.propagate(100))
    await note("list_heartbeats", store.list_heartbeats)
    await note("submit", lambda: store.submit([_plan()]))
    wish = types.RunUpdate(2, is_cancelled=False, is_suspended=True, priority=7)
    await store.connection.execute("UPDATE workron.run SET generation = 1 WHERE id = $1", run)
    await note("update_run", lambda: store.update_run(run, wish))
    await note("list_owned", lambda: store.list_owned(300))
    await note("find_by_uid", lambda: store.find_by_uid([uuid.UUID(int=1)]))
    await note("list_failures", lambda: store.list_failures(run, 10))
    await note("cancel", lambda: store.cancel(run))
    for reader in (store.list_jobs, store.count_states, store.list_specs, store.list_attempts):
        await note(reader.__name__, partial(reader, run))
    for asker in (store.list_blockers, store.read_output, store.read_result):
        await note(asker.__name__, partial(asker, run))
    await note("read_output_chunks", lambda: store.read_output_chunks(run, 1))
    await note("get_spec", lambda: store.get_spec(run))
    for many in (store.get_jobs, store.filter_ended):
        await note(many.__name__, partial(many, [run]))
    await note("list_run_summaries", lambda: store.list_run_summaries("flows"))
    await note("find_job", lambda: store.find_job(run, "unknown"))
    await note("get_run", lambda: store.get_run(run))
    await note("find_run", lambda: store.find_run("large", Kind.JOB, "root1000"))
    sign = await store.heartbeat_version(hand)
    await note("reap", lambda: store.reap(hand.session.worker, version=sign))
    await note("audit", lambda: store.audit(1000))
    await hand.store.rollback()
    return read_costs


def _plan() -> Plan:
    about = {"namespace": "large"}
    upstreams = [plans.outside("root1000"), plans.outside("root2000900")]
    return plans.dag("flow", about, a=plans.task(outside=upstreams), b=plans.task("a"))


async def measured(dsn: str) -> ReadCosts:
    """Fill a new database, and call each operation in sessions of three kinds."""
    stage = Stage(dsn)
    await stage.open()
    try:
        await stage.sql.execute(_PREPARE)
        warmed = await stage.worker("warmed")
        for _ in range(10):
            await _spend(warmed, 0)
        await stage.sql.execute(_LOAD)
        run = await stage.sql.fetchval("SELECT waiting + 200 FROM bounds")
        sessions = {"warmed": warmed, "not analyzed": await stage.worker("new")}
        read_costs = {kind: await _spend(hand, run) for kind, hand in sessions.items()}
        await stage.sql.execute("ANALYZE")
        read_costs["analyzed"] = await _spend(await stage.worker("later"), run)
    finally:
        await stage.close()
    return {
        (kind, verb): read_cost for kind, by in read_costs.items() for verb, read_cost in by.items()
    }
