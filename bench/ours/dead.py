"""Measures how soon a dead worker is detected, from its end until its claim is requeued.

Each worker holds one job, and two maintainers run. Where a new worker on the same machine proves
the death, no lease has to expire; the time includes the start of that worker. A round reports the
last of its dead workers.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from typing import Final

from bench.figure import Against, Figure, Goal, Side
from bench.ours import worker_processes
from bench.ours.worker_processes import WorkerProcesses

_DETECTION_SECONDS: Final = 2
_STAGGER_SECONDS: Final = 0.37
"""They should not all die at the same moment between two checks."""
_IS_REGISTERED: Final = "SELECT EXISTS (SELECT FROM workron.worker WHERE id = $1)"


def figures(dsn: str, long: Mapping[str, int]) -> Iterator[Figure]:
    """Kill workers with and without a successor, and stop workers."""
    workers, lease = long["dead"], long["lease_seconds"]
    proven = Side(
        f"detection of the last of {workers} killed workers when another one starts",
        lambda: asyncio.run(_proven(dsn, workers, lease)),
    )
    yield Figure("dead-proven", "s", proven, _within(0), part="dead")
    for name, what, number in (
        ("killed", "killed", signal.SIGKILL), ("frozen", "stopped", signal.SIGSTOP),
    ):  # fmt: skip
        side = _silent(dsn, f"detection of the last of {workers} {what} workers", long, number)
        yield Figure(f"dead-{name}", "s", side, _within(lease), part="dead")


def _silent(dsn: str, title: str, long: Mapping[str, int], number: signal.Signals) -> Side:
    workers, lease = long["dead"], long["lease_seconds"]
    return Side(title, lambda: asyncio.run(_detected(dsn, workers, lease, number)))


def _within(lease: int) -> list[Against]:
    title = (
        f"the lease of {lease} s plus {_DETECTION_SECONDS} s"
        if lease
        else f"{_DETECTION_SECONDS} s"
    )
    side = Side(title, lambda: float(lease + _DETECTION_SECONDS))
    return [Against(side, Goal(1, is_most=True))]


async def _proven(dsn: str, workers: int, lease: int) -> float:
    """Kill one worker after the other, and start another one each time."""
    async with worker_processes.running(dsn, workers + 1, lease) as one:
        one.maintain()
        await one.start_workers_with_jobs(1)
        return max([await _detected_by_successor(one) for _ in range(workers)])


async def _detected_by_successor(one: WorkerProcesses) -> float:
    worker = one.started[-1]
    ids = await one.registered()
    worker.kill()
    began = time.perf_counter()
    one.start_worker()
    detected = await one.until(_IS_REGISTERED, False, ids[worker.pid])  # noqa: FBT003 - the result of the query
    # The next worker must claim the job before it is killed.
    await one.until("SELECT count(*) FROM workron.running", 1)
    return detected - began


async def _detected(dsn: str, workers: int, lease: int, number: signal.Signals) -> float:
    async with worker_processes.running(dsn, workers, lease) as one:
        one.maintain()
        ids = await one.start_workers_with_jobs(workers)
        detections = []
        for worker in [each for each in one.started if each.pid in ids]:
            detections.append(asyncio.create_task(_detection(one, worker, ids[worker.pid], number)))
            await asyncio.sleep(_STAGGER_SECONDS)
        return max(await asyncio.gather(*detections))


async def _detection(
    one: WorkerProcesses, worker: subprocess.Popen[bytes], row: int, number: signal.Signals
) -> float:
    worker.send_signal(number)
    began = time.perf_counter()
    return await one.until(_IS_REGISTERED, False, row) - began  # noqa: FBT003 - the result of the query
