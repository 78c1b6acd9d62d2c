"""Measures how fast workers are again after their PostgreSQL was killed and came back.

Complete workers with a runner that starts no process use a server of their own. The figure compares
their rate from some seconds after the server accepts connections with their rate at the same time
after a first start. Enough jobs are ready for both, because workers without jobs would look slow,
and so would workers on rows that were inserted just before and are not vacuumed. Both phases begin
at a checkpoint, as after a recovery, and none falls into either.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import asyncpg

from bench import draining, server
from bench.config import Config
from bench.figure import Against, Figure, Goal
from bench.ours import noop, stock
from bench.series import Series
from tests import postgres_server
from tests.postgres_server import Server
from workron.store.postgres import schema

_WORKERS: Final = 2
_IS_LEFT: Final = "SELECT EXISTS (SELECT FROM workron.ready)"
_ENDED: Final = "SELECT count(*) FROM workron.done WHERE attempts > 0"
_POLL_SECONDS: Final = 0.1
_NO_CHECKPOINT: Final = {"max_wal_size": "32GB"}


class _Rates(NamedTuple):
    before: float
    after: float


def figures(config: Config) -> Iterator[Figure]:
    """Restart the server under load."""
    within = config.long["restart_within"]
    series = Series(lambda: asyncio.run(_measured(config)))
    title = (
        f"{_WORKERS} `workron worker` processes, no-op, from {within} s after a restart of"
        f" PostgreSQL, `max_wal_size` {_NO_CHECKPOINT['max_wal_size']}"
    )
    after = series.side(title, lambda rates: rates.after)
    before = series.side("before the restart", lambda rates: rates.before)
    yield Figure("restart", "jobs/s", after, [Against(before, Goal(0.95))], part="restart")


async def _measured(config: Config) -> _Rates:
    settings = {**config.server, **_NO_CHECKPOINT}
    with postgres_server.serving(is_durable=True, settings=settings) as one:
        await schema.migrate(one.dsn)
        jobs = await stock.opened(one.dsn)
        await jobs.queue(config.long["restart_ready"])
        await jobs.close()
        await server.settle(one.dsn)
        with draining.started(noop.programs(_WORKERS, one.dsn)):
            return await _rates(one, config.long)


async def _rates(one: Server, long: Mapping[str, int]) -> _Rates:
    seconds, within = long["restart_seconds"], long["restart_within"]
    while not (await _ended(one.dsn))[0]:  # noqa: ASYNC110 - a database sets no event
        await asyncio.sleep(_POLL_SECONDS)
    await asyncio.sleep(within)
    before = await _rate(one.dsn, seconds)
    await asyncio.to_thread(one.crash)
    await asyncio.to_thread(one.start)
    await asyncio.sleep(within)
    return _Rates(before, await _rate(one.dsn, seconds))


async def _rate(url: str, seconds: int) -> float:
    first, began = await _ended(url)
    await asyncio.sleep(seconds)
    last, over = await _ended(url)
    if not await _query(url, _IS_LEFT):
        raise RuntimeError("all jobs have ended: `restart_ready` is too small for this machine")
    return (last - first) / (over - began)


async def _ended(url: str) -> tuple[int, float]:
    """Return the number of ended jobs and the time of the query."""
    queried = time.perf_counter()
    return await _query(url, _ENDED), queried


async def _query(url: str, statement: str) -> Any:
    connection = await asyncpg.connect(url)
    answer = await connection.fetchval(statement)
    await connection.close()
    return answer
