"""graphile-worker, for Node: the fastest queue over PostgreSQL, which keeps no history."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from bench import server
from bench.draining import Program, Queue
from bench.figure import Side
from bench.peers.peer import Peer

_SCRIPT: Final = pathlib.Path(__file__).parent / "scripts" / "graphile.cjs"
_TIMEOUT_SECONDS: Final = 300
_PROCESSES: Final = 2
"""One process uses one core; its documentation starts several for more."""
_ENDED: Final = (
    "SELECT (SELECT jobs FROM bench.loaded) - (SELECT count(*) FROM graphile_worker._private_jobs)"
)


def pickup(dsn: str, samples: int) -> Side:
    """Measure the mean time from before a job is added to its start, in milliseconds."""

    async def measure() -> float:
        async with server.empty(dsn) as url:
            return statistics.mean(await asyncio.to_thread(latency, PEER.folder, url, samples))

    return Side("graphile-worker, add to start, mean", lambda: asyncio.run(measure()))


def latency(folder: pathlib.Path, url: str, samples: int) -> list[float]:
    """Add one job after the other to an idle system, and return the latencies in ms."""
    seen: list[float] = json.loads(_run(folder, "latency", url, samples))
    return seen


def _put(folder: pathlib.Path, version: str) -> None:
    command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund"]
    package = f"graphile-worker@{version}"
    subprocess.run([*command, package], cwd=folder, check=True, timeout=_TIMEOUT_SECONDS)


def _queue(folder: pathlib.Path) -> Queue:
    def load(url: str, jobs: int) -> None:
        _run(folder, "load", url, jobs)

    def programs(url: str) -> Sequence[Program]:
        return [Program(_command("work", url), _environment(folder))] * _PROCESSES

    return Queue(f"graphile-worker, {_PROCESSES} processes", load, programs, _ENDED)


def _run(folder: pathlib.Path, what: str, url: str, count: int) -> str:
    return subprocess.run(
        [*_command(what, url), str(count)],
        env=_environment(folder),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=_TIMEOUT_SECONDS,
    ).stdout


def _command(what: str, url: str) -> list[str]:
    return ["node", str(_SCRIPT), what, url]


def _environment(folder: pathlib.Path) -> Mapping[str, str]:
    # It logs no line per job, as in its own performance tests.
    return {**os.environ, "NODE_PATH": str(folder / "node_modules"), "NO_LOG_SUCCESS": "1"}


PEER: Final = Peer("graphile-worker", _put, _queue)
