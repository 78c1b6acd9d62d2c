"""Starts real workers and maintainers, each a process, with jobs that never end."""

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

_TIMEOUT_SECONDS: Final = 60
_POLL_SECONDS: Final = 0.01
_MAINTAINERS: Final = 2
_HELD: Final = "SELECT count(*) FROM workron.running"
_IDS: Final = "SELECT id, split_part(name, ':', 2)::integer AS pid FROM workron.worker"


@dataclass(frozen=True, slots=True)
class WorkerProcesses:
    """Worker and maintainer processes on one database, and a connection for queries."""

    url: str
    folder: str
    database: asyncpg.Pool
    started: list[subprocess.Popen[bytes]]

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker with one slot."""
        return self._start("worker", "--slots", "1")

    def maintain(self) -> None:
        """Start two maintainers, as in an installation without a single point of failure."""
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

    async def start_workers_with_jobs(self, workers: int) -> Mapping[int, int]:
        """Start workers, wait until each runs a job, and return their ids by process id."""
        for _ in range(workers):
            self.start_worker()
        await self.until(_HELD, workers)
        return await self.registered()

    async def registered(self) -> Mapping[int, int]:
        """Return the ids of the registered workers by process id."""
        return {row["pid"]: row["id"] for row in await self.database.fetch(_IDS)}

    async def until(self, query: str, wanted: Any, *values: Any) -> float:
        """Repeat a query until it returns the wanted value, and return the time."""
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            while await self.database.fetchval(query, *values) != wanted:  # noqa: ASYNC110
                await asyncio.sleep(_POLL_SECONDS)
        return time.perf_counter()


@contextlib.asynccontextmanager
async def running(dsn: str, jobs: int, lease_seconds: int) -> AsyncIterator[WorkerProcesses]:
    """Yield a database with jobs that never end; kill the started processes afterwards."""
    async with server.database(dsn) as url:
        await _submit(url, jobs, lease_seconds)
        pool = await asyncpg.create_pool(url, min_size=1, max_size=1)
        with tempfile.TemporaryDirectory(prefix="workron-bench-") as folder:
            processes = WorkerProcesses(url, folder, pool, [])
            try:
                yield processes
            finally:
                await asyncio.to_thread(_end, processes.started)
                await pool.close()


async def _submit(url: str, jobs: int, lease_seconds: int) -> None:
    store = await connect.connect(url, clock=plans.Clock(), rng=plans.RNG)
    await store.ensure_pool("default", "default", lease_seconds=lease_seconds)
    if jobs:
        await store.submit([plans.many(jobs, {"command": "exec sleep 100000"})])
    await store.close()


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Kill the processes; the runner of each worker kills its commands and ends."""
    for one in processes:
        one.kill()
    for one in processes:
        one.wait()
