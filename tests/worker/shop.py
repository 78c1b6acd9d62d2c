"""A store in memory, a maintainer, and agents that tests hire; made by the fixture `shop`."""

import asyncio
import contextlib
import random
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from tests.worker.ear import Ear
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

QUICK = AgentConfig(
    heartbeat=timedelta(milliseconds=10),
    poll=timedelta(milliseconds=50),
    lease_margin=timedelta(seconds=5),
    store_timeout=timedelta(minutes=1),
)


class RealClock:
    """Real time, which a test may turn on."""

    def __init__(self) -> None:
        self.turned = 0.0

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.turned)

    def monotonic(self) -> float:
        return time.monotonic() + self.turned


class Shop:
    """What the tests of the agent work with."""

    def __init__(self, store: Store, clock: RealClock) -> None:
        self.store = store
        self.clock = clock
        self.rng = random.Random()
        self.boot = uuid.uuid4()
        self.executor = RunnerExecutor(grace=timedelta(minutes=1), boot=self.boot)
        self.ear = Ear()
        self.heard_of: list[ClaimedJob] = []
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
        door: object | None = None,
        config: AgentConfig = QUICK,
        name: str = "worker",
        pool: str = "default",
    ) -> Agent:
        """Hire an agent; a `door` stands before the store's."""
        dependencies = AgentDependencies(
            store=cast("WorkerStore", door or self.store),
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
        """Let an agent work meanwhile, and then drain it."""
        task = asyncio.create_task(agent.run())
        try:
            yield task
            agent.drain()
            await task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def ended(self, root: JobId) -> JobRow:
        """Wait for the end of a root."""
        [row] = await wait.wait(self.store, [root])
        return row

    async def states(self, root: JobId) -> dict[str, State]:
        """Tell the state of each job by its name, elements with their index."""
        rows = await self.store.list_jobs(root)
        return {
            row.name + ("" if row.index is None else f"/{row.index}"): row.state for row in rows
        }

    async def output(self, root: JobId, name: str) -> str:
        """Give what a task wrote."""
        rows = {row.name: row for row in await self.store.list_jobs(root)}
        return (await self.store.read_output(rows[name].job)).decode()

    def _listen(self, claimed: ClaimedJob) -> OnOutput:
        self.heard_of.append(claimed)
        return self.ear


@contextlib.asynccontextmanager
async def opened() -> AsyncIterator[Shop]:
    """Open a shop and close it."""
    clock = RealClock()
    store = await connect.connect("memory:", clock=clock, rng=random.Random())
    shop = Shop(store, clock)
    maintainer = asyncio.create_task(
        Maintainer(store, clock, uuid.uuid4()).run(store.wait_for_work)
    )
    try:
        yield shop
    finally:
        maintainer.cancel()
        await asyncio.gather(maintainer, return_exceptions=True)
        shop.executor.close()
        await store.close()


def _manifest(kind: str, name: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "apiVersion": "workron.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
