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
"""As the comparisons of its authors have it: about twice as fast as its usual 50."""
_HOUR: Final = 3_600_000
_SECOND: Final = 1_000


@dataclass
class Nothing:
    """What a job is to do."""


def _client(url: str) -> AsyncClient:
    # Its parser of URLs wants a host, also where the socket's folder follows.
    return AsyncClient(url.replace("@/", "@localhost/"))


async def _load(url: str, jobs: int) -> None:
    client = _client(url)
    await client.migrate()
    # The storage that a first worker would switch to, and that takes jobs by COPY.
    await client.install_queue_storage()
    await client.enqueue_many_copy([Nothing()] * jobs, queue=_QUEUE)
    await client.close()


async def _work(url: str) -> None:
    client = _client(url)
    client.task(Nothing, queue=_QUEUE)(_nothing)
    await client.start(
        [{"name": _QUEUE, "max_workers": _AT_ONCE}],
        # What has ended goes with the part of the queue that it was in; by default that is cleared
        # within seconds, and there would be neither history nor anything to count.
        queue_storage_queue_rotate_interval_ms=_HOUR,
        queue_storage_claim_rotate_interval_ms=_SECOND,
    )
    await asyncio.Event().wait()


async def _nothing(job: object) -> None:
    del job


if __name__ == "__main__":
    what, url, *jobs = sys.argv[1:]
    asyncio.run(_load(url, int(jobs[0])) if what == "load" else _work(url))
