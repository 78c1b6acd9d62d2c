"""Each limit of the machine performs all operations that its title names."""

import asyncio
import contextlib
import functools
import pathlib
import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeVar
from unittest import mock

import asyncpg
import pytest

from bench import server
from bench.figure import Side
from bench.limit import copying, disk, pgbench, rounds, sqlite_jobs, sqlite_rows, tables
from bench.ours import workflows
from tests import postgres_server
from workron.scheduling import submit

_ENDED = """
    SELECT count(*) AS rows, count(DISTINCT job) AS jobs,
           bool_and(d.state = 'Succeeded' AND a.outcome = d.state AND d.attempts = a.attempt
                    AND a.attempt = 1 AND a.started_at <= a.finished_at) AS is_well,
           (SELECT count(*) FROM ready) + (SELECT count(*) FROM running) AS left
    FROM done d FULL JOIN attempt a USING (job)
"""
_TABLES = """
    SELECT relname FROM pg_class WHERE relnamespace = 'workron'::regnamespace AND relkind = 'r'
    -- Not the tables that migrations and tokens use.
    AND relname NOT IN ('meta', 'migration', 'token')
"""
_ENDED_IN_SQLITE = """
    SELECT count(*), count(DISTINCT job),
           min(d.state = 'Succeeded' AND a.outcome = d.state AND d.attempts = a.attempt
               AND a.attempt = 1 AND length(a.claim) = 36 AND a.started_at <= a.finished_at),
           (SELECT count(*) FROM ready) + (SELECT count(*) FROM running)
    FROM done d JOIN attempt a USING (job)
"""
_GIVEN = {"$1": "1", "$2": "gen_random_uuid()", ":batch": "100", ":client_id": "1"}
_COPIES = [
    (copying.array, 2, 0),
    (copying.flat, 1, 0),
    (functools.partial(copying.with_edges, edges=1), 1, 1),
    (functools.partial(copying.with_edges, edges=2), 1, 2),
]
_T = TypeVar("_T")


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with postgres_server.running() as dsn:
        yield dsn


@contextlib.contextmanager
def _seen_at_last(look: Callable[[asyncpg.Connection], Awaitable[_T]]) -> Iterator[list[_T]]:
    """Inspect each database of a limit before it is dropped."""
    seen: list[_T] = []
    usual = server.empty

    @contextlib.asynccontextmanager
    async def looked_into(dsn: str) -> AsyncIterator[str]:
        async with usual(dsn) as url:
            yield url
            async with _connected(url) as connection:
                seen.append(await look(connection))

    with mock.patch.object(server, "empty", looked_into):
        yield seen


async def _ended(connection: asyncpg.Connection) -> tuple[object, ...]:
    (row,) = await connection.fetch(_ENDED)
    return tuple(row)


async def _rows(connection: asyncpg.Connection) -> dict[str, list[asyncpg.Record]]:
    return {
        table: await connection.fetch(f'SELECT t::text FROM workron."{table}" t ORDER BY 1')
        for (table,) in await connection.fetch(_TABLES)
    }


@contextlib.asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.mark.parametrize(("jobs", "batch", "ended"), [(20, 1, 20), (400, 100, 400), (50, 100, 200)])
def test_pgbench_completes_every_job(dsn: str, jobs: int, batch: int, ended: int) -> None:
    with _seen_at_last(_ended) as seen:
        assert pgbench.draining(dsn, jobs, batch=batch).measure() > 0
    assert seen == [(ended, ended, True, 0)]


def test_hops_complete_every_job(dsn: str) -> None:
    with _seen_at_last(_ended) as seen:
        assert rounds.hopping(dsn, 20).measure() > 0
    assert seen == [(20, 20, True, 0)]


def test_measurement_fails_when_jobs_are_left(dsn: str) -> None:
    with (
        mock.patch.object(pgbench, "_rate", return_value=1.0),
        pytest.raises(RuntimeError, match="0 of 20 jobs have ended, 20 are left"),
    ):
        pgbench.draining(dsn, 20, batch=10).measure()


@pytest.mark.parametrize("file", ["end_and_take.sql", "take_then_end.sql"])
def test_claim_scans_an_index_when_statistics_are_misleading(dsn: str, file: str) -> None:
    statements = (tables.SQL / file).read_text()
    for name, value in _GIVEN.items():
        statements = statements.replace(name, value)
    plan = asyncio.run(_explained(dsn, [one for one in statements.split(";") if "WITH" in one]))
    assert "Index Scan using ready_walk" in plan
    assert "Seq Scan" not in plan


@pytest.mark.parametrize(("jobs", "batch"), [(20, 1), (400, 100), (50, 100), (150, 100)])
def test_sqlite_loop_completes_every_job(jobs: int, batch: int) -> None:
    seen: list[tuple[object, ...]] = []
    usual = sqlite_jobs._drain

    def looked_into(connection: sqlite3.Connection, batches: int, batch: int) -> None:
        usual(connection, batches, batch)
        seen.extend(connection.execute(_ENDED_IN_SQLITE))

    with mock.patch.object(sqlite_jobs, "_drain", looked_into):
        assert sqlite_jobs.draining(jobs, batch=batch).measure() > 0
    assert seen == [(jobs, jobs, 1, 0)]


def test_sqlite_measurement_fails_when_jobs_are_left() -> None:
    with (
        mock.patch.object(sqlite_jobs, "_drain"),
        pytest.raises(RuntimeError, match="0 of 20 jobs have ended, 20 are left"),
    ):
        sqlite_jobs.draining(20, batch=10).measure()


def test_sqlite_loop_scans_indexes() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(sqlite_jobs.tables())
    moves = [one for one in sqlite_jobs.statements() if "FROM" in one]
    steps = [
        step
        for one in moves
        for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {one}", {"now": 0, "batch": 100})
    ]
    assert len(moves) == 5
    assert any("USING INDEX ready_walk" in step for step in steps)
    assert not [step for step in steps if "SCAN" in step or "TEMP B-TREE" in step]


def test_sqlite_limits_commit_durably(tmp_path: pathlib.Path) -> None:
    connection = sqlite_rows.opened(tmp_path / "limit.db")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    # SQLite's number for FULL.
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert sqlite_rows.committing(20, batch=10).measure() > 0


async def _explained(dsn: str, statements: list[str]) -> str:
    async with tables.drained(dsn, 0) as url, _connected(url) as connection:
        plans = [await connection.fetch(f"EXPLAIN {one}") for one in statements]
        return "\n".join(line for plan in plans for (line,) in plan)


@pytest.mark.parametrize(("copy", "groups", "edges"), _COPIES)
def test_copy_writes_the_rows_of_a_submission(
    dsn: str, copy: Callable[[str, int], Side], groups: int, edges: int
) -> None:
    with _seen_at_last(_rows) as seen:
        assert copy(dsn, 250).measure() > 0
    submitted, copied = seen
    assert copied == submitted
    assert len(copied["job"]) == groups + 250
    # The first layer has no upstreams.
    assert len(copied["edge"]) == edges * (250 - 2)
    assert len(copied["ready"]) == (2 if edges else 250)


def test_error_has_the_output_of_psql_when_a_copy_fails(dsn: str) -> None:
    async def copy() -> float:
        async with server.empty(dsn) as url:
            return await asyncio.to_thread(copying.seconds, url, {"job": b"1\n"})

    with pytest.raises(RuntimeError, match='schema "workron" does not exist'):
        asyncio.run(copy())


def test_disk_is_measured_in_the_data_folder(dsn: str) -> None:
    assert (server.data(dsn) / "PG_VERSION").is_file()
    before = set(server.data(dsn).iterdir())
    assert disk.syncing(server.data(dsn), 5).measure() > 0
    assert set(server.data(dsn).iterdir()) == before


def test_jobs_are_split_into_several_workflows_when_they_are_many() -> None:
    plans = submit.plan(workflows.FLAT.read_in(10_001), random.Random(1)).plans
    # Each workflow has a row of its own.
    assert [len(one.nodes) for one in plans] == [10_001, 2]
