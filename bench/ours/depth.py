"""Measures whether claims slow down with millions of finished jobs and with many ready jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping

from bench import server
from bench.figure import Against, Figure, Goal
from bench.ours import load, stock
from bench.ours.load import LoadResult
from bench.series import Series

_SHALLOW = 20_000
"""The number of ready jobs in a database that is otherwise empty."""


def figures(dsn: str, long: Mapping[str, int]) -> Iterator[Figure]:
    """Measure a load on a full database and on an empty one."""
    ended, ready, seconds = long["history"], long["ready"], long["depth_seconds"]
    deep = Series(lambda: asyncio.run(_measured(dsn, ended, ready, seconds)))
    flat = Series(lambda: asyncio.run(_measured(dsn, 0, min(ready, _SHALLOW), seconds)))
    title = f"claim and complete, 2 workers, 100 a call, {ended:,} ended and {ready:,} ready jobs"
    rate = deep.side(title, lambda result: result.rate)
    empty = flat.side("on an empty database", lambda result: result.rate)
    yield Figure("depth", "jobs/s", rate, [Against(empty, Goal(0.9))], part="depth")
    late = deep.side(f"{title}: claim latency, p99", lambda result: result.claim)
    empty = flat.side("on an empty database: claim latency, p99", lambda result: result.claim)
    against = [Against(empty, Goal(1.3, is_most=True))]
    yield Figure("depth-claim", "ms", late, against, part="depth")


async def _measured(dsn: str, ended: int, ready: int, seconds: int) -> LoadResult:
    async with server.database(dsn) as url:
        jobs = await stock.opened(url)
        await jobs.finish(ended)
        await jobs.queue(ready)
        await server.settle(url)
        async with load.running(url, jobs, ready) as work:
            await work.warm()
            result = await work.during(seconds)
        await jobs.close()
        return result
