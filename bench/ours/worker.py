"""Measures one worker over PostgreSQL: how fast it runs jobs, and how much memory it takes."""

from __future__ import annotations

import asyncio
import pathlib
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import asyncpg

from bench import server
from bench.figure import Against, Figure, Goal, Side
from bench.limit import processes
from bench.ours import plans
from bench.ours.program import WORKRON
from workron.store import connect

_SECONDS = "SELECT extract(epoch FROM max(finished_at) - min(started_at)) FROM workron.attempt"
_REGISTERED = "SELECT count(*) FROM workron.worker"
_RUNNING = "SELECT count(*) FROM workron.running"
_BARE = textwrap.dedent("""
    import asyncio, sys, asyncpg
    async def main():
        connection = await asyncpg.connect(sys.argv[1])
        print("ready", flush=True)
        await asyncio.sleep(600)
    asyncio.run(main())
""")

_COMPARED_SLOTS = 16
"""With this many slots it is also compared with tools."""


def figures(dsn: str, jobs: Mapping[str, int], tools: Sequence[Against]) -> Iterator[Figure]:
    """Run shell commands, idle, and run silent commands."""
    shell = jobs["shell"]
    limit = processes.spawning(shell, at_once=1, argv=processes.SHELL)
    for slots in (8, 16, 32):
        ours = _running(dsn, shell, slots)
        against = [Against(limit, Goal(0.7)), *(tools if slots == _COMPARED_SLOTS else ())]
        yield Figure(f"shell-{slots}", "jobs/s", ours, against)
    idle = Side("an idle agent", lambda: asyncio.run(_idle(dsn)))
    bare = Side("Python with one connection", lambda: _bare(dsn))
    yield Figure("idle", "MB", idle, [Against(bare, Goal(1.5, is_most=True))])
    silent = Side("a running silent job", lambda: asyncio.run(_job(dsn, jobs["silent"])))
    most = Side("20 KB", lambda: 20.0)
    yield Figure("silent", "KB", silent, [Against(most, Goal(1, is_most=True))])


def _running(dsn: str, jobs: int, slots: int) -> Side:
    """Measure from the first claim to the last end, as recorded in the database."""
    title = f"`workron worker`, PostgreSQL, {slots} slots, `sh -c true`"
    return Side(title, lambda: asyncio.run(_run(dsn, jobs, slots)))


async def _run(dsn: str, jobs: int, slots: int) -> float:
    async with server.database(dsn) as url:
        await _submit(url, jobs, "true")
        with _worker(url, "--slots", str(slots), "--max-jobs", str(jobs)) as worker:
            await asyncio.to_thread(worker.wait)
        connection = await asyncpg.connect(url)
        seconds = float(await connection.fetchval(_SECONDS))
        await connection.close()
        return jobs / seconds


async def _idle(dsn: str) -> float:
    async with server.database(dsn) as url:
        with _worker(url) as worker:
            await _until(url, _REGISTERED, 1)
            return _memory(worker.pid) / 1e6


def _bare(dsn: str) -> float:
    command = [sys.executable, "-c", _BARE, dsn]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        memory = _memory(child.pid) / 1e6
        child.kill()
    return memory


async def _job(dsn: str, jobs: int) -> float:
    async with server.database(dsn) as url:
        with _worker(url, "--slots", str(jobs)) as worker:
            # The first job imports what every later one uses as well.
            await _submit(url, 1, "true")
            await _until(url, "SELECT count(*) FROM workron.attempt", 1)
            before = _memory(worker.pid) + _memory(_runner(worker.pid))
            await _submit(url, jobs, "exec sleep 600")
            await _until(url, _RUNNING, jobs)
            time.sleep(1)  # noqa: ASYNC251 - until the last command has started
            after = _memory(worker.pid) + _memory(_runner(worker.pid))
            # With few jobs Python may have freed more memory meanwhile than they need.
            return max(after - before, 1) / jobs / 1e3


async def _submit(url: str, jobs: int, command: str) -> None:
    store = await connect.connect(url, clock=plans.Clock(), rng=plans.RNG)
    await store.submit([plans.many(jobs, {"command": command})], supersedes=True)
    await store.close()


async def _until(url: str, query: str, count: int) -> None:
    connection = await asyncpg.connect(url)
    while await connection.fetchval(query) < count:  # noqa: ASYNC110 - a database sets no event
        await asyncio.sleep(0.1)
    await connection.close()


@contextmanager
def _worker(url: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [str(WORKRON), "worker", "--store", url, *options]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as worker:
        try:
            yield worker
        finally:
            if worker.poll() is None:
                worker.kill()


def _memory(pid: int) -> int:
    """Return the proportional set size of a process."""
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(rollup.partition("Pss:")[2].split()[0]) * 1024


def _runner(agent: int) -> int:
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        fields = stat.read_text().rpartition(")")[2].split()
        if int(fields[1]) == agent:
            return int(stat.parent.name)
    raise RuntimeError(f"the agent {agent} has no runner")
