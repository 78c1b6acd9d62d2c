"""Each limit does what it says, and all of it."""

import asyncio
import contextlib
import pathlib
import random
from collections.abc import AsyncIterator, Iterator
from unittest import mock

import asyncpg
import pytest

from bench import server
from bench.limit import copying, disk, pgbench, rounds, tables
from bench.ours import workflows
from bench.ours.workflows import Shape
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
    -- What a migration writes, and what admits workers.
    AND relname NOT IN ('meta', 'migration', 'token')
"""
_GIVEN = {"$1": "1", "$2": "gen_random_uuid()", ":batch": "100", ":client_id": "1"}
_SHAPES = {0: workflows.FLAT, **workflows.EDGES}


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with postgres_server.running() as dsn:
        yield dsn


@contextlib.contextmanager
def _seen_at_last(question: str) -> Iterator[list[asyncpg.Record]]:
    """Ask the database of a limit before it is removed."""
    seen: list[asyncpg.Record] = []
    usual = server.empty

    @contextlib.asynccontextmanager
    async def asked(dsn: str) -> AsyncIterator[str]:
        async with usual(dsn) as url:
            yield url
            async with _connected(url) as connection:
                seen.extend(await connection.fetch(question))

    with mock.patch.object(server, "empty", asked):
        yield seen


@contextlib.asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.mark.parametrize(("jobs", "batch", "ended"), [(20, 1, 20), (400, 100, 400), (50, 100, 200)])
def test_pgbench_takes_every_job_to_its_end(dsn: str, jobs: int, batch: int, ended: int) -> None:
    with _seen_at_last(_ENDED) as seen:
        assert pgbench.draining(dsn, jobs, batch=batch).measure() > 0
    assert [tuple(row) for row in seen] == [(ended, ended, True, 0)]


def test_hops_take_every_job_to_its_end(dsn: str) -> None:
    with _seen_at_last(_ENDED) as seen:
        assert rounds.hopping(dsn, 20).measure() > 0
    assert [tuple(row) for row in seen] == [(20, 20, True, 0)]


def test_drain_that_leaves_jobs_is_no_measurement(dsn: str) -> None:
    with (
        mock.patch.object(pgbench, "_rate", return_value=1.0),
        pytest.raises(RuntimeError, match="of 20 jobs 0 have ended, and 20 are left"),
    ):
        pgbench.draining(dsn, 20, batch=10).measure()


@pytest.mark.parametrize("file", ["end_and_take.sql", "take_then_end.sql"])
def test_claim_walks_an_index_whatever_the_statistics_are(dsn: str, file: str) -> None:
    statements = (tables.SQL / file).read_text()
    for name, value in _GIVEN.items():
        statements = statements.replace(name, value)
    plan = asyncio.run(_explained(dsn, [one for one in statements.split(";") if "WITH" in one]))
    assert "Index Scan using ready_walk" in plan
    assert "Seq Scan" not in plan


async def _explained(dsn: str, statements: list[str]) -> str:
    async with tables.drained(dsn, 0) as url, _connected(url) as connection:
        plans = [await connection.fetch(f"EXPLAIN {one}") for one in statements]
        return "\n".join(line for plan in plans for (line,) in plan)


@pytest.mark.parametrize(("edges", "shape"), _SHAPES.items())
def test_copy_has_the_rows_of_a_submission(
    dsn: str, tmp_path: pathlib.Path, edges: int, shape: Shape
) -> None:
    submitted, copied = asyncio.run(_both(dsn, shape, tmp_path))
    assert copied == submitted
    assert len(copied["job"]) == 1 + 250
    # The first layer waits for nothing.
    assert len(copied["edge"]) == edges * (250 - 2)
    assert len(copied["ready"]) == (2 if edges else 250)


async def _both(dsn: str, shape: Shape, folder: pathlib.Path) -> list[dict[str, list[str]]]:
    async with server.database(dsn) as one, server.database(dsn) as other:
        written = await copying.written_out(one, 250, shape, folder)
        assert await asyncio.to_thread(copying.seconds, other, written, folder) > 0
        return [await _rows(one), await _rows(other)]


async def _rows(url: str) -> dict[str, list[str]]:
    async with _connected(url) as connection:
        return {
            table: [
                row["t"]
                for row in await connection.fetch(
                    f'SELECT t::text AS t FROM workron."{table}" t ORDER BY 1'
                )
            ]
            for (table,) in await connection.fetch(_TABLES)
        }


def test_copy_is_measured(dsn: str) -> None:
    assert copying.array(dsn, 20).measure() > 0


def test_copy_that_fails_says_why(dsn: str, tmp_path: pathlib.Path) -> None:
    async def copy() -> float:
        async with server.empty(dsn) as url:
            (tmp_path / "job").write_text("1\n")
            return await asyncio.to_thread(copying.seconds, url, ["job"], tmp_path)

    with pytest.raises(RuntimeError, match=r'schema "workron" does not exist'):
        asyncio.run(copy())


def test_disk_is_asked_where_the_data_lies(dsn: str) -> None:
    assert (server.data(dsn) / "PG_VERSION").is_file()
    before = set(server.data(dsn).iterdir())
    assert disk.syncing(server.data(dsn), 5).measure() > 0
    assert set(server.data(dsn).iterdir()) == before


def test_many_jobs_are_several_workflows() -> None:
    plans = submit.plan(workflows.FLAT.read_in(10_001), random.Random(1)).plans
    # Each with a row for itself.
    assert [len(one.nodes) for one in plans] == [10_001, 2]
