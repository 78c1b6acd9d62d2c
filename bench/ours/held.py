"""Measures the cost of a transaction that stays open: PostgreSQL cannot vacuum what ends meanwhile.

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
from bench.ours.load import Seen
from bench.series import Series

_DRAIN_SECONDS: Final = 60
_PATIENCE: Final = 3
"""So many times as long is waited for it."""
_BEAT_MILLISECONDS: Final = 2_500
"""A quarter of the usual lease: so long a worker waits for the answer to one beat."""
_WRITES: Final = "BEGIN; CREATE TABLE held (); SELECT pg_current_xact_id()"
_NOTHING: Final = "SELECT 1"
_READS: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM workron.ready"


class _Run(NamedTuple):
    seen: Seen
    drained: float
    """In how many seconds what was ready has ended, after the release."""


def figures(dsn: str, long: Mapping[str, int]) -> Iterator[Figure]:
    """Work beside each kind of transaction, and beside none."""
    alone = _series(dsn, long, _NOTHING)
    for name, what, statement in (
        ("writer", "that has written", _WRITES),
        ("snapshot", "with a snapshot", _READS),
    ):
        beside = _series(dsn, long, statement)
        title = f"beside a transaction {what}, {long['held_seconds']:,} s"
        yield from _figures(f"held-{name}", title, beside, alone)


def _figures(name: str, title: str, beside: Series[_Run], alone: Series[_Run]) -> Iterator[Figure]:
    ours = beside.side(f"claim and complete {title}", lambda run: run.seen.rate)
    usual = alone.side("beside none", lambda run: run.seen.rate)
    yield Figure(name, "jobs/s", ours, [Against(usual, Goal(0.9))], part="held")
    ours = beside.side(f"a claim {title}, p99", lambda run: run.seen.claim)
    usual = alone.side("a claim beside none, p99", lambda run: run.seen.claim)
    slower = [Against(usual, Goal(1.5, is_most=True))]
    yield Figure(f"{name}-claim", "ms", ours, slower, part="held")
    most = Side(f"{_BEAT_MILLISECONDS:,} ms", lambda: float(_BEAT_MILLISECONDS))
    ours = beside.side(f"the longest beat {title}", lambda run: run.seen.heartbeat)
    against = [Against(most, Goal(1, is_most=True))]
    yield Figure(f"{name}-beat", "ms", ours, against, part="held")
    most = Side(f"{_DRAIN_SECONDS} s", lambda: float(_DRAIN_SECONDS))
    ours = beside.side(f"what is ready has ended {title}, and its end", lambda run: run.drained)
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
                seen = await work.during(long["held_seconds"])
            drained = await work.drained(_PATIENCE * _DRAIN_SECONDS)
        await jobs.close()
        return _Run(seen, drained)


@contextlib.asynccontextmanager
async def _held(url: str, statement: str) -> AsyncIterator[None]:
    """Have a session meanwhile that has said this, and idles."""
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    yield
    await connection.close()
