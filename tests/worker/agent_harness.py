"""A store in memory, a maintainer and agents; made by the fixture `harness`."""

import asyncio
import contextlib
import random
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from tests.worker.output_collector import OutputCollector
from workron.core import planner
from workron.core.ids import JobId
from workron.core.model.job import Job
from workron.core.model.workflow import Workflow
from workron.core.states import State
from workron.scheduling import wait
from workron.scheduling.maintainer import Maintainer
from workron.store import connect
from workron.store.api import Store, WorkerStore
from workron.store.types import ClaimedJob, JobRow, Registration
from workron_worker.agent import Agent
from workron_worker.config import AgentConfig, AgentDependencies, Slots
from workron_worker.executor import OnOutput
from workron_worker.metrics import WorkerMetrics
from workron_worker.runner_client import RunnerExecutor

ENDS_IN_ATTEMPT_2 = 'if [ "$WORKRON_ATTEMPT" = 1 ]; then echo on; exec sleep 1000; fi'
"""A command that writes a line and runs on, until its second attempt."""

QUICK_CONFIG = AgentConfig(
    heartbeat=timedelta(milliseconds=10),
    poll=timedelta(milliseconds=50),
    lease_margin=timedelta(seconds=5),
    store_timeout=timedelta(minutes=1),
)


class AdjustableClock:
    """Real time, plus an offset that a test may change."""

    def __init__(self) -> None:
        self.offset_seconds = 0.0

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.offset_seconds)

    def monotonic(self) -> float:
        return time.monotonic() + self.offset_seconds


class AgentHarness:
    """One store with its executor, from which a test makes agents."""

    def __init__(self, store: Store, clock: AdjustableClock) -> None:
        self.store = store
        self.clock = clock
        self.rng = random.Random()
        self.boot = uuid.uuid4()
        self.executor = RunnerExecutor(grace=timedelta(minutes=1), boot=self.boot)
        self.collector = OutputCollector()
        self.started_jobs: list[ClaimedJob] = []
        self.slots = Slots(4)
        self.metrics = WorkerMetrics()

    async def job(self, name: str = "job", **spec: Any) -> JobId:
        """Submit a Job."""
        job = Job.parse(_manifest("Job", name, spec))
        [submitted] = await self.store.submit([planner.plan_job(job, uuid.uuid4())])
        return submitted.run

    async def workflow(self, *tasks: Mapping[str, Any]) -> JobId:
        """Submit a Workflow."""
        workflow = Workflow.parse(_manifest("Workflow", "flow", {"tasks": list(tasks)}))
        [submitted] = await self.store.submit([planner.plan_workflow(workflow, uuid.uuid4())])
        return submitted.run

    async def agent(
        self,
        *,
        store: object | None = None,
        config: AgentConfig = QUICK_CONFIG,
        name: str = "worker",
        pool: str = "default",
    ) -> Agent:
        """Create an agent of the store, or of one that replaces it."""
        dependencies = AgentDependencies(
            store=cast("WorkerStore", store or self.store),
            executor=self.executor,
            slots=self.slots,
            clock=self.clock,
            rng=self.rng,
            listener=self._listen,
            metrics=self.metrics,
        )
        token = await self.store.ensure_pool("default", pool, lease_seconds=10.0)
        return Agent(dependencies, Registration(token, name, self.boot, self.slots.count), config)

    @contextlib.asynccontextmanager
    async def working(self, agent: Agent) -> AsyncIterator[asyncio.Task[None]]:
        """Let an agent work while the context is active, and then drain it."""
        task = asyncio.create_task(agent.run())
        try:
            yield task
            agent.drain()
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def ended(self, run: JobId) -> JobRow:
        """Wait for the end of a run."""
        [row] = await wait.wait(self.store, [run])
        return row

    async def states(self, run: JobId) -> dict[str, State]:
        """Return the state of each job by its name, elements with their index."""
        rows = await self.store.list_jobs(run)
        return {
            row.name + ("" if row.index is None else f"/{row.index}"): row.state for row in rows
        }

    async def output(self, run: JobId, name: str) -> str:
        """Return what a task wrote."""
        rows = {row.name: row for row in await self.store.list_jobs(run)}
        return (await self.store.read_output(rows[name].job)).decode()

    def _listen(self, claimed: ClaimedJob) -> OnOutput:
        self.started_jobs.append(claimed)
        return self.collector


@contextlib.asynccontextmanager
async def open_harness() -> AsyncIterator[AgentHarness]:
    """Open the store and run its maintainer while the context is active."""
    clock = AdjustableClock()
    store = await connect.connect("memory:", clock=clock, rng=random.Random())
    harness = AgentHarness(store, clock)
    maintainer = asyncio.create_task(
        Maintainer(store, clock, uuid.uuid4()).run(store.wait_for_work)
    )
    try:
        yield harness
    finally:
        maintainer.cancel()
        await asyncio.gather(maintainer, return_exceptions=True)
        harness.executor.close()
        await store.close()


def _manifest(kind: str, name: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "apiVersion": "workron.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
