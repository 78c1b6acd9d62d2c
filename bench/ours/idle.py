"""Measures what idle workers write, and whether they stay registered on a busy machine.

A write is a transaction that gets a transaction id; one that only reads does not count.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import Final

from bench.figure import Against, Figure, Goal, Side
from bench.ours import worker_processes

_MOST_WRITES: Final = 0.6
_NUMBERS: Final = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
_KEPT: Final = """
    SELECT count(*) FROM workron.running r
    WHERE r.worker = ANY ($1) AND r.attempt = 1 AND r.losses = 0
      AND EXISTS (SELECT FROM workron.worker w WHERE w.id = r.worker)
"""
_LOOPS_PER_CORE: Final = 4
_LOOP: Final = textwrap.dedent("""
    import os
    parent = os.getppid()
    while os.getppid() == parent:
        for _ in range(1_000_000):
            pass
""")
"""It ends with the process that started it."""


def figures(dsn: str, long: Mapping[str, int]) -> Iterator[Figure]:
    """Leave workers idle, on an idle machine and on a busy one."""
    for name, title, has_jobs in (
        ("idle", "an idle worker", False), ("silent", "a worker with a silent job", True),
    ):  # fmt: skip
        side = _writing(dsn, f"{title}: writes", long, has_jobs=has_jobs)
        most = Side(f"{_MOST_WRITES} writes/s", lambda: _MOST_WRITES)
        against = [Against(most, Goal(1, is_most=True))]
        yield Figure(f"writes-{name}", "writes/s", side, against, part="writes")
    workers, seconds = long["idle_workers"], long["starved_seconds"]
    title = (
        f"{seconds:,} s with {_LOOPS_PER_CORE} busy loops on each core: claims that were neither"
        " reaped nor released"
    )
    kept = Side(title, lambda: asyncio.run(_starved(dsn, long)))
    all_claims = Side("all claims", lambda: float(workers))
    yield Figure("starved", "claims", kept, [Against(all_claims, Goal(1))], part="starved")


def _writing(dsn: str, title: str, long: Mapping[str, int], *, has_jobs: bool) -> Side:
    return Side(title, lambda: asyncio.run(_writes(dsn, long, has_jobs=has_jobs)))


async def _writes(dsn: str, long: Mapping[str, int], *, has_jobs: bool) -> float:
    """Count without a maintainer, which writes itself."""
    workers, seconds = long["idle_workers"], long["idle_seconds"]
    async with worker_processes.running(dsn, workers * has_jobs, long["lease_seconds"]) as one:
        for _ in range(workers):
            one.start_worker()
        await one.until("SELECT count(*) FROM workron.worker", workers)
        await one.until("SELECT count(*) FROM workron.running", workers * has_jobs)
        before = await one.database.fetchval(_NUMBERS)
        await asyncio.sleep(seconds)
        return float(await one.database.fetchval(_NUMBERS) - before) / seconds / workers


async def _starved(dsn: str, long: Mapping[str, int]) -> float:
    """Count the claims that are unchanged."""
    workers = long["idle_workers"]
    async with worker_processes.running(dsn, workers, long["lease_seconds"]) as one:
        one.maintain()
        ids = await one.start_workers_with_jobs(workers)
        with _busy():
            await asyncio.sleep(long["starved_seconds"])
        return float(await one.database.fetchval(_KEPT, list(ids.values())))


@contextlib.contextmanager
def _busy() -> Iterator[None]:
    """Keep every core busy with several processes."""
    loops = [_loop(core) for core in os.sched_getaffinity(0) for _ in range(_LOOPS_PER_CORE)]
    try:
        yield
    finally:
        for one in loops:
            one.kill()
            one.wait()


def _loop(core: int) -> subprocess.Popen[bytes]:
    one = subprocess.Popen([sys.executable, "-c", _LOOP])
    os.sched_setaffinity(one.pid, {core})
    return one
