"""Measures whether claims slow down with millions of finished jobs and with many ready jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from bench import server
from bench.figure import Against, Figure, Goal
from bench.ours import load, stock
from bench.ours.load import Seen
from bench.series import Series

_SHALLOW = 20_000
"""So many are ready in a database that is else empty."""


def figures(dsn: str, long: Mapping[str, int]) -> Iterator[Figure]:
    """Work over a full database and over an empty one."""
    ended, ready, seconds = long["history"], long["ready"], long["depth_seconds"]
    deep = Series(lambda: asyncio.run(_measured(dsn, ended, ready, seconds)))
    flat = Series(lambda: asyncio.run(_measured(dsn, 0, min(ready, _SHALLOW), seconds)))
    title = f"claim and complete, 2 workers, 100 a call, {ended:,} ended and {ready:,} ready"
    rate = deep.side(title, lambda seen: seen.rate)
    empty = flat.side("over an empty database", lambda seen: seen.rate)
    yield Figure("depth", "jobs/s", rate, [Against(empty, Goal(0.9))], part="depth")
    late = deep.side(f"{title}: a claim, p99", lambda seen: seen.claim)
    empty = flat.side("over an empty database: a claim, p99", lambda seen: seen.claim)
    against = [Against(empty, Goal(1.3, is_most=True))]
    yield Figure("depth-claim", "ms", late, against, part="depth")


async def _measured(dsn: str, ended: int, ready: int, seconds: int) -> Seen:
    async with server.database(dsn) as url:
        jobs = await stock.opened(url)
        await jobs.finish(ended)
        await jobs.queue(ready)
        await server.settle(url)
        async with load.running(url, jobs, ready) as work:
            await work.warm()
            seen = await work.during(seconds)
        await jobs.close()
        return seen
