"""Jobs of PgQueuer: `load URL JOBS` creates its tables and jobs, `work URL` drains them.

It runs in the virtual environment of this peer and imports nothing of Workron.
"""

from __future__ import annotations

import sys
from typing import Final

import asyncpg
import uvloop  # type: ignore[import-not-found]
from pgqueuer import PgQueuer  # type: ignore[import-not-found]
from pgqueuer.db import AsyncpgPoolDriver  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]

_BATCH: Final = 500
"""As in its performance guide for short jobs; the default is 10."""


def _pool(url: str) -> asyncpg.Pool:
    """Open as many connections as the guide; with one, fetching and completing would alternate."""
    return asyncpg.create_pool(url, min_size=5, max_size=20)


async def _load(url: str, jobs: int) -> None:
    async with _pool(url) as pool:
        queries = Queries(AsyncpgPoolDriver(pool))
        await queries.install()
        # The first item of the guide's checklist.
        await queries.optimize_autovacuum()
        await queries.enqueue(["nothing"] * jobs, [None] * jobs, [0] * jobs)


async def _work(url: str) -> None:
    async with _pool(url) as pool:
        queuer = PgQueuer.from_asyncpg_pool(pool)
        queuer.entrypoint("nothing")(_nothing)
        await queuer.run(batch_size=_BATCH)


async def _nothing(job: object) -> None:
    del job


if __name__ == "__main__":
    what, url, *jobs = sys.argv[1:]
    uvloop.run(_load(url, int(jobs[0])) if what == "load" else _work(url))
