"""Jobs of Procrastinate: `load URL JOBS` creates its tables and jobs, `work URL` drains them.

It runs in the virtual environment of this peer and imports nothing of Workron.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

from procrastinate import App, PsycopgConnector  # type: ignore[import-not-found]

_AT_ONCE: Final = 10
"""Its worker fetches one job per call; with several at once a fetch need not wait for an end. They
share its few default connections; with one for each it is slower."""


def _app(url: str) -> App:
    app = App(connector=PsycopgConnector(conninfo=url))
    app.task(name="nothing")(_nothing)
    return app


async def _load(url: str, jobs: int) -> None:
    async with _app(url).open_async() as app:
        await app.schema_manager.apply_schema_async()
        await app.tasks["nothing"].batch_defer_async(*({} for _ in range(jobs)))


async def _work(url: str) -> None:
    async with _app(url).open_async() as app:
        await app.run_worker_async(concurrency=_AT_ONCE)


async def _nothing() -> None:
    """Do nothing, as a job."""


if __name__ == "__main__":
    what, url, *jobs = sys.argv[1:]
    asyncio.run(_load(url, int(jobs[0])) if what == "load" else _work(url))
