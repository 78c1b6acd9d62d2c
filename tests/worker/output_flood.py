"""An agent of its own process, while one of its commands writes a gigabyte.

`python tests/worker/output_flood.py URL STREAM` prints its growth and its heartbeats as JSON;
`test_output_flood` starts it, because a process that runs tests has memory of its own.
"""

import asyncio
import itertools
import json
import pathlib
import random
import sys
import time
import uuid
from datetime import timedelta
from typing import Any

from tests.worker.agent_harness import AdjustableClock
from workron.core import planner
from workron.core.ids import JobId
from workron.core.model.job import Job
from workron.scheduling import wait
from workron.store import connect
from workron.store.api import Store
from workron.store.types import Registration
from workron_worker.agent import Agent
from workron_worker.config import AgentConfig, AgentDependencies, Slots
from workron_worker.runner_client import RunnerExecutor

_BYTES = 1_000_000_000
_CONFIG = AgentConfig(heartbeat=timedelta(milliseconds=100))


class RecordingStore:
    """Records when heartbeats are answered, in CPU time of this process.

    Other load of the machine delays a heartbeat, but does not use this process's time.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.heartbeats: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def heartbeat(self, key: Any) -> Any:
        answer = await self._store.heartbeat(key)
        self.heartbeats.append(time.process_time())
        return answer


def _memory(field: str) -> int:
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) * 1024


def _reset_peak_memory() -> int:
    """Reset the peak of memory and return the current memory."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


async def _submit(store: Store, name: str, **spec: Any) -> JobId:
    manifest = {
        "apiVersion": "workron.dev/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": spec,
    }
    [submitted] = await store.submit([planner.plan_job(Job.parse(manifest), uuid.uuid4())])
    return submitted.run


async def _measure(store: Store, executor: RunnerExecutor, boot: uuid.UUID, stream: int) -> Any:
    recording: Any = RecordingStore(store)
    dependencies = AgentDependencies(
        recording, executor, Slots(2), AdjustableClock(), random.Random()
    )
    token = await store.ensure_pool("default", "default")
    agent = Agent(dependencies, Registration(token, "flood", boot, 2), _CONFIG)
    work = asyncio.create_task(agent.run())
    await wait.wait(store, [await _submit(store, "idle", command="true")])
    idle, began = _reset_peak_memory(), time.process_time()
    flood = f"head -c {_BYTES} /dev/zero"
    job = await _submit(
        store, "flood", command=flood, outputStreamBytes=stream, outputLimitBytes=65536
    )
    await wait.wait(store, [job])
    grown = _memory("VmHWM") - idle
    agent.drain()
    await work
    during = [one for one in recording.heartbeats if one > began]
    gaps = [later - one for one, later in itertools.pairwise([began, *during])]
    output = await store.read_output(job)
    return {"grown": grown, "gap": max(gaps), "stored": len(output)}


async def _main(url: str, stream: int) -> None:
    store = await connect.connect(url, clock=AdjustableClock(), rng=random.Random())
    boot = uuid.uuid4()
    executor = RunnerExecutor(grace=timedelta(seconds=1), boot=boot)
    try:
        print(json.dumps(await _measure(store, executor, boot, stream)))  # noqa: T201
    finally:
        executor.close()
        await store.close()


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], int(sys.argv[2])))
