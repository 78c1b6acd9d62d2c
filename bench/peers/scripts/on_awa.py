"""Jobs of awa: `load URL JOBS` creates its tables and jobs, `work URL` drains them.

It runs in the virtual environment of this peer and imports nothing of Workron.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import Final

from awa import AsyncClient  # type: ignore[import-not-found]

_QUEUE: Final = "bench"
_AT_ONCE: Final = 256
"""As in its authors' comparisons: about twice as fast as with the default of 50."""
_HOUR: Final = 3_600_000
_SECOND: Final = 1_000


@dataclass
class Nothing:
    """The arguments of a job."""


def _client(url: str) -> AsyncClient:
    # Its URL parser requires a host, even before the folder of the socket.
    return AsyncClient(url.replace("@/", "@localhost/"))


async def _load(url: str, jobs: int) -> None:
    client = _client(url)
    await client.migrate()
    # The storage that a first worker would switch to; it inserts jobs by COPY.
    await client.install_queue_storage()
    await client.enqueue_many_copy([Nothing()] * jobs, queue=_QUEUE)
    await client.close()


async def _work(url: str) -> None:
    client = _client(url)
    client.task(Nothing, queue=_QUEUE)(_nothing)
    await client.start(
        [{"name": _QUEUE, "max_workers": _AT_ONCE}],
        # By default it deletes ended jobs with their part of the queue within seconds, which would
        # leave neither history nor anything to count.
        queue_storage_queue_rotate_interval_ms=_HOUR,
        queue_storage_claim_rotate_interval_ms=_SECOND,
    )
    await asyncio.Event().wait()


async def _nothing(job: object) -> None:
    del job


if __name__ == "__main__":
    what, url, *jobs = sys.argv[1:]
    asyncio.run(_load(url, int(jobs[0])) if what == "load" else _work(url))
