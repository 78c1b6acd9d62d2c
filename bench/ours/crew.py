"""Real workers and maintainers over a database, each a process, with jobs that never end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import asyncpg

from bench import server
from bench.ours import plans
from bench.ours.program import WORKRON
from workron.store import connect

_PATIENCE_SECONDS: Final = 60
_LOOK_SECONDS: Final = 0.01
_MAINTAINERS: Final = 2
_HELD: Final = "SELECT count(*) FROM workron.running"
_IDS: Final = "SELECT id, split_part(name, ':', 2)::integer AS pid FROM workron.worker"


@dataclass(frozen=True, slots=True)
class Crew:
    """Processes on one database, and a connection to look on with."""

    url: str
    folder: str
    database: asyncpg.Pool
    started: list[subprocess.Popen[bytes]]

    def hire(self) -> subprocess.Popen[bytes]:
        """Start a worker with one slot."""
        return self._start("worker", "--slots", "1")

    def maintain(self) -> None:
        """Start as many maintainers as somebody would who wants no gap."""
        for _ in range(_MAINTAINERS):
            self._start("maintain")

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        one = subprocess.Popen(
            [str(WORKRON), *words, "--store", self.url],
            env={**os.environ, "TMPDIR": self.folder},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.started.append(one)
        return one

    async def employ(self, workers: int) -> Mapping[int, int]:
        """Start workers, wait until each holds a job, and give their ids by process."""
        for _ in range(workers):
            self.hire()
        await self.until(_HELD, workers)
        return await self.registered()

    async def registered(self) -> Mapping[int, int]:
        """Give the ids of those that there are, by process."""
        return {row["pid"]: row["id"] for row in await self.database.fetch(_IDS)}

    async def until(self, question: str, wanted: Any, *values: Any) -> float:
        """Ask until that is the answer, and tell when it was."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while await self.database.fetchval(question, *values) != wanted:  # noqa: ASYNC110
                await asyncio.sleep(_LOOK_SECONDS)
        return time.perf_counter()


@contextlib.asynccontextmanager
async def gathered(dsn: str, jobs: int, lease_seconds: int) -> AsyncIterator[Crew]:
    """Give one without anybody, over a database with so many jobs that never end."""
    async with server.database(dsn) as url:
        await _submit(url, jobs, lease_seconds)
        pool = await asyncpg.create_pool(url, min_size=1, max_size=1)
        with tempfile.TemporaryDirectory(prefix="workron-bench-") as folder:
            crew = Crew(url, folder, pool, [])
            try:
                yield crew
            finally:
                await asyncio.to_thread(_end, crew.started)
                await pool.close()


async def _submit(url: str, jobs: int, lease_seconds: int) -> None:
    store = await connect.connect(url, clock=plans.Clock(), rng=plans.RNG)
    await store.ensure_pool("default", "default", lease_seconds=lease_seconds)
    if jobs:
        await store.submit([plans.many(jobs, {"command": "exec sleep 100000"})])
    await store.close()


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kill them; the runner of each ends what it runs, and then itself."""
    for one in processes:
        one.kill()
    for one in processes:
        one.wait()
