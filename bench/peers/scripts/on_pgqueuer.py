"""Jobs of PgQueuer: `load URL JOBS` puts them into tables made for it, `work URL` drains them.

Runs in the environment of that peer, and knows nothing of ours.
"""

from __future__ import annotations

import sys
from typing import Final

import asyncpg
import uvloop  # type: ignore[import-not-found]
from pgqueuer import PgQueuer  # type: ignore[import-not-found]
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found]
from pgqueuer.queries import Queries  # type: ignore[import-not-found]

_BATCH: Final = 500
"""Its guide on performance: more than 10 where jobs are short. Of 100 and 500 the faster."""


async def _load(url: str, jobs: int) -> None:
    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    # The first item of the same guide's checklist.
    await queries.optimize_autovacuum()
    await queries.enqueue(["nothing"] * jobs, [None] * jobs, [0] * jobs)
    await connection.close()


async def _work(url: str) -> None:
    # The guide: a connection, not a pool, for who drains.
    queuer = PgQueuer.from_asyncpg_connection(await asyncpg.connect(url))
    queuer.entrypoint("nothing")(_nothing)
    await queuer.run(batch_size=_BATCH)


async def _nothing(job: object) -> None:
    del job


if __name__ == "__main__":
    what, url, *jobs = sys.argv[1:]
    uvloop.run(_load(url, int(jobs[0])) if what == "load" else _work(url))
