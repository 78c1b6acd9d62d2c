"""Measures the cost of a transaction that stays open: PostgreSQL cannot vacuum rows meanwhile.

One transaction has written and idles, like a forgotten session. Another holds a snapshot in which
it has read the tables of Workron, like a backup or a long report. After it ends, the remaining jobs
must finish soon.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Final, NamedTuple

import asyncpg

from bench import server
from bench.figure import Against, Figure, Goal, Side
from bench.ours import load, stock
from bench.ours.load import LoadResult
from bench.series import Series

_DRAIN_SECONDS: Final = 60
_DRAIN_TIMEOUT_FACTOR: Final = 3
_HEARTBEAT_MILLISECONDS: Final = 2_500
"""A quarter of the lease of 10 s: the timeout of a heartbeat."""
_WRITES: Final = "BEGIN; CREATE TABLE held (); SELECT pg_current_xact_id()"
_NONE: Final = "SELECT 1"
_READS: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM workron.ready"


class _Run(NamedTuple):
    result: LoadResult
    drained: float
    """Seconds until the ready jobs have ended after the transaction."""


def figures(dsn: str, long: Mapping[str, int]) -> Iterator[Figure]:
    """Measure a load during each kind of transaction, and without one."""
    without = _series(dsn, long, _NONE)
    for name, what, statement in (
        ("writer", "that has written", _WRITES),
        ("snapshot", "with a snapshot", _READS),
    ):
        during = _series(dsn, long, statement)
        transaction = f"a transaction {what}, {long['held_seconds']:,} s"
        yield from _figures(f"held-{name}", transaction, during, without)


def _figures(
    name: str, transaction: str, during: Series[_Run], without: Series[_Run]
) -> Iterator[Figure]:
    ours = during.side(f"claim and complete during {transaction}", lambda run: run.result.rate)
    usual = without.side("without the transaction", lambda run: run.result.rate)
    yield Figure(name, "jobs/s", ours, [Against(usual, Goal(0.9))], part="held")
    ours = during.side(f"claim latency during {transaction}, p99", lambda run: run.result.claim)
    usual = without.side("claim latency without the transaction, p99", lambda run: run.result.claim)
    slower = [Against(usual, Goal(1.5, is_most=True))]
    yield Figure(f"{name}-claim", "ms", ours, slower, part="held")
    most = Side(f"{_HEARTBEAT_MILLISECONDS:,} ms", lambda: float(_HEARTBEAT_MILLISECONDS))
    ours = during.side(
        f"the longest heartbeat during {transaction}", lambda run: run.result.heartbeat
    )
    against = [Against(most, Goal(1, is_most=True))]
    yield Figure(f"{name}-heartbeat", "ms", ours, against, part="held")
    most = Side(f"{_DRAIN_SECONDS} s", lambda: float(_DRAIN_SECONDS))
    ours = during.side(f"drain of the ready jobs after {transaction}", lambda run: run.drained)
    against = [Against(most, Goal(1, is_most=True))]
    yield Figure(f"{name}-drain", "s", ours, against, part="held")


def _series(dsn: str, long: Mapping[str, int], statement: str) -> Series[_Run]:
    return Series(lambda: asyncio.run(_run(dsn, long, statement)))


async def _run(dsn: str, long: Mapping[str, int], statement: str) -> _Run:
    async with server.database(dsn) as url:
        jobs = await stock.opened(url)
        async with load.running(url, jobs, long["held_ready"]) as work:
            await work.warm()
            async with _held(url, statement):
                result = await work.during(long["held_seconds"])
            drained = await work.drained(_DRAIN_TIMEOUT_FACTOR * _DRAIN_SECONDS)
        await jobs.close()
        return _Run(result, drained)


@contextlib.asynccontextmanager
async def _held(url: str, statement: str) -> AsyncIterator[None]:
    """Keep a session open that has executed the statement and idles."""
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    yield
    await connection.close()
