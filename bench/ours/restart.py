"""How fast workers are again when their PostgreSQL died where it stood, and came back.

Whole workers over a runner that starts nothing, on a server of their own. What is told is their
rate from some seconds on after the server takes calls again, and their rate before it went.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import asyncpg

from bench import draining, server
from bench.config import Config
from bench.figure import Against, Figure, Goal
from bench.ours import noop, stock
from bench.series import Series
from tests import postgres_server
from tests.postgres_server import Server
from workron.store import postgres

_WORKERS: Final = 2
_ENDED: Final = "SELECT count(*) FROM workron.done WHERE attempts > 0"
_LOOK_SECONDS: Final = 0.1


class _Rates(NamedTuple):
    before: float
    after: float


def figures(config: Config) -> Iterator[Figure]:
    """Restart it under work."""
    within = config.long["restart_within"]
    series = Series(lambda: asyncio.run(_measured(config)))
    title = f"{_WORKERS} of `workron worker`, no-op, from {within} s after a restart of PostgreSQL"
    after = series.side(title, lambda rates: rates.after)
    before = series.side("before it", lambda rates: rates.before)
    yield Figure("restart", "jobs/s", after, [Against(before, Goal(0.95))], is_long=True)


async def _measured(config: Config) -> _Rates:
    with postgres_server.serving(is_durable=True, settings=config.server) as one:
        await postgres.migrate(one.dsn)
        await _fill(one.dsn, config.long["restart_ready"])
        with draining.started(noop.programs(_WORKERS, one.dsn)):
            return await _rates(one, config.long)


async def _fill(url: str, jobs: int) -> None:
    queue = await stock.opened(url)
    await queue.queue(jobs)
    await queue.close()
    await server.settle(url)


async def _rates(one: Server, long: Mapping[str, int]) -> _Rates:
    seconds, within = long["restart_seconds"], long["restart_within"]
    while not (await _ended(one.dsn))[0]:  # noqa: ASYNC110 - a database sets no event
        await asyncio.sleep(_LOOK_SECONDS)
    before = await _rate(one.dsn, seconds)
    await asyncio.to_thread(one.crash)
    await asyncio.to_thread(one.begin)
    await asyncio.sleep(within)
    return _Rates(before, await _rate(one.dsn, seconds))


async def _rate(url: str, seconds: int) -> float:
    first, began = await _ended(url)
    await asyncio.sleep(seconds)
    last, over = await _ended(url)
    return (last - first) / (over - began)


async def _ended(url: str) -> tuple[int, float]:
    """Count the jobs that have ended, and tell when it was asked."""
    connection = await asyncpg.connect(url)
    asked = time.perf_counter()
    count = await connection.fetchval(_ENDED)
    await connection.close()
    return count, asked
