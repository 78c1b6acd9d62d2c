"""Measures how fast a system drains a queue of jobs, as seen in its database.

All systems are measured alike: an empty database, jobs created with the system's own means, its
processes started, and then the finished rows counted. The time runs from the last moment without
any finished job to the moment when all have finished, so the start of a program does not count.
"""

from __future__ import annotations

import asyncio
import os
import pathlib
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final

import asyncpg

from bench import server
from bench.figure import Side

_TIMEOUT_SECONDS: Final = 120
_SHORTEST_PAUSE_SECONDS: Final = 0.02
_PAUSE_FACTOR: Final = 20
"""Pause between two counts, as a multiple of the time of a count, to keep their load low."""
_DISCONNECT_TIMEOUT_SECONDS: Final = 10
_OTHERS: Final = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND backend_type = 'client backend'
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A process that works until it is killed."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: pathlib.Path | None = None


@dataclass(frozen=True, slots=True)
class Queue:
    """A system of jobs over PostgreSQL, set up as its own documentation advises for speed."""

    title: str
    load: Callable[[str, int], None]
    """Creates its tables in the database of this URL, and inserts this many jobs."""
    programs: Callable[[str], Sequence[Program]]
    """Returns its processes that drain the database of this URL."""
    ended: str
    """An SQL statement that counts the jobs that have ended."""


def side(queue: Queue, dsn: str, jobs: int) -> Side:
    """Measure a system in jobs a second."""
    return Side(queue.title, lambda: asyncio.run(_drain(queue, dsn, jobs)))


def cost(title: str, queue: Queue, dsn: str, jobs: int, meter: str) -> Side:
    """Measure how much a counter of the server, read by an SQL statement, rises per job."""
    return Side(title, lambda: asyncio.run(_spend(queue, dsn, jobs, meter)))


async def _drain(queue: Queue, dsn: str, jobs: int) -> float:
    async with _loaded(queue, dsn, jobs) as (url, connection):
        with started(queue.programs(url)) as log:
            return jobs / await _seconds(connection, queue, jobs, log)


async def _spend(queue: Queue, dsn: str, jobs: int, meter: str) -> float:
    async with _loaded(queue, dsn, jobs) as (url, connection):
        await _wait_for_other_sessions(connection)
        before = await connection.fetchval(meter)
        with started(queue.programs(url)) as log:
            # One transaction for all counts, so that they do not count as commits.
            async with connection.transaction():
                await _seconds(connection, queue, jobs, log)
        await _wait_for_other_sessions(connection)
        return float(await connection.fetchval(meter) - before) / jobs


@asynccontextmanager
async def _loaded(
    queue: Queue, dsn: str, jobs: int
) -> AsyncIterator[tuple[str, asyncpg.Connection]]:
    async with server.empty(dsn) as url:
        await asyncio.to_thread(queue.load, url, jobs)
        connection = await asyncpg.connect(url)
        # Otherwise plans would depend on when autovacuum analyzes the tables.
        await connection.execute("VACUUM ANALYZE")
        try:
            yield url, connection
        finally:
            await connection.close()


async def _wait_for_other_sessions(connection: asyncpg.Connection) -> None:
    """Wait until all other sessions have ended, and flush the statistics."""
    async with asyncio.timeout(_DISCONNECT_TIMEOUT_SECONDS):
        while await connection.fetchval(_OTHERS):  # noqa: ASYNC110 - a database sets no event
            await asyncio.sleep(_SHORTEST_PAUSE_SECONDS)
    # Other sessions flush when they end; this one would flush within a second.
    await connection.execute("SELECT pg_stat_force_next_flush()")


async def _seconds(
    connection: asyncpg.Connection, queue: Queue, jobs: int, log: pathlib.Path
) -> float:
    began = last_none = time.perf_counter()
    while True:
        queried = time.perf_counter()
        ended = await connection.fetchval(queue.ended)
        answered = time.perf_counter()
        if ended >= jobs:
            return answered - last_none
        if not ended:
            last_none = queried
        if answered - began > _TIMEOUT_SECONDS:
            raise RuntimeError(f"{queue.title}: {ended} of {jobs} jobs have ended; {_log_end(log)}")
        pause = max(_SHORTEST_PAUSE_SECONDS, _PAUSE_FACTOR * (answered - queried))
        await asyncio.sleep(pause)


def _log_end(log: pathlib.Path) -> str:
    return f"its log ends with: {log.read_text('utf-8', 'replace')[-2000:]}"


@contextmanager
def started(programs: Sequence[Program]) -> Iterator[pathlib.Path]:
    """Run processes during the context, and yield the path of their log."""
    with tempfile.TemporaryDirectory(prefix="workron-bench-") as folder:
        log = pathlib.Path(folder) / "log"
        with log.open("wb") as output:
            running = [
                subprocess.Popen(
                    one.command,
                    # Removing the folder also removes the files of a killed program.
                    env={**os.environ, "TMPDIR": folder, **one.environment},
                    cwd=one.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                )
                for one in programs
            ]
            try:
                yield log
            finally:
                _end(running)


def _end(running: Sequence[subprocess.Popen[bytes]]) -> None:
    for one in running:
        one.kill()
    for one in running:
        one.wait()
