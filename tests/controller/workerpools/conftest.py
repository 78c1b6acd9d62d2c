"""A controller over a cluster in memory and a real store in memory."""

import base64
import random
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest

from tests.controller.cluster import claimed, ended
from tests.controller.manual_clock import ManualClock
from tests.controller.workerpools import fake_cluster
from tests.controller.workerpools.fake_cluster import FakeCluster, Raw
from workron.core import planner
from workron.core.ids import JobId
from workron.core.model.job import Job
from workron.store.api import Store
from workron.store.types import ClaimedJob, Registration, Session
from workron_controller.kube import resources
from workron_controller.kube.client import RetryingCalls
from workron_controller.kube.events import KubernetesEvent
from workron_controller.workerpools.autoscaler import ConnectionBudget
from workron_controller.workerpools.config import PoolConfig, PoolDependencies
from workron_controller.workerpools.controller import WorkerPoolController

Begin = Callable[..., WorkerPoolController]


@pytest.fixture
def yard() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def notices() -> list[KubernetesEvent]:
    """What a person is to be told."""
    return []


@pytest.fixture
async def begin(
    yard: FakeCluster, store: Store, time: ManualClock, notices: list[KubernetesEvent]
) -> AsyncIterator[Begin]:
    """Begin to keep, as the replica that leads from now on."""
    controllers: list[WorkerPoolController] = []

    def begin(
        connections: int | None = None,
        namespaces: Sequence[str] = (),
        task_timeout: float = 60,
        **said: Any,
    ) -> WorkerPoolController:
        settings = PoolConfig("ours:1", namespace="workron", **said)
        retrying = RetryingCalls(time, random.Random(), seconds=0)
        budget, leave = ConnectionBudget(connections), notices.append
        deps = PoolDependencies(yard, retrying, store, budget, settings, namespaces, time, leave)
        controllers.append(WorkerPoolController(deps, task_timeout=task_timeout))
        return controllers[-1]

    yield begin
    for controller in controllers:
        controller.stop()


@dataclass
class Farm:
    """Nodes and agents: what comes to life in pods, and the jobs that it runs."""

    yard: FakeCluster
    store: Store
    time: ManualClock
    sessions: dict[str, Session] = field(default_factory=dict)

    async def submit(
        self, count: int = 1, *, namespace: str = "lab", pool: str = "gpu"
    ) -> list[JobId]:
        """Have jobs wait for a pool."""
        return [await self._submit(namespace, pool) for _ in range(count)]

    async def _submit(self, namespace: str, pool: str) -> JobId:
        name = f"job-{uuid.uuid4().hex}"
        metadata = {"name": name, "namespace": namespace}
        raw = {"metadata": metadata, "spec": {"command": "true", "pool": pool}}
        kind = {"apiVersion": "workron.dev/v1alpha1", "kind": "Job"}
        [made] = await self.store.submit([planner.plan_job(Job.parse(kind | raw), uuid.uuid4())])
        return made.run

    async def turn(self, controller: WorkerPoolController, seconds: float = 2) -> None:
        """Let the controller look, then the cluster work, then agents come up."""
        await controller.reconcile_all()
        await controller.wait_idle()
        self.yard.work()
        self.time.turn(seconds)

    async def come_up(self, controller: WorkerPoolController, seconds: float = 2) -> None:
        """Let the controller look and all pods begin, and the controller see that."""
        await self.turn(controller, seconds)
        await self.start_all()
        await self.turn(controller, seconds)

    async def start_all(self) -> None:
        for pod in self.yard.all(resources.PODS):
            if not pod["status"] and "deletionTimestamp" not in pod["metadata"]:
                await self.start(pod)

    async def start(self, pod: Raw, node: str = "node") -> Session:
        """Have a pod begin: its agent reads its Secret and enters the store."""
        about = pod["metadata"]
        fake_cluster.place_on(pod, node)
        [agent] = pod["spec"]["containers"]
        slots = int(agent["args"][agent["args"].index("--slots") + 1])
        secret = about["labels"]["workron.dev/pool"]
        data = self.yard.objects[resources.SECRETS, about["namespace"], f"workron-pool-{secret}"]
        token = base64.b64decode(data["data"]["token"]).decode()
        registration = Registration(token, about["uid"], uuid.uuid4(), slots)
        session = self.sessions[about["uid"]] = await self.store.register(registration)
        await self.store.heartbeat(session.key)
        return session

    async def take(self, pod: Raw, count: int = 1) -> list[ClaimedJob]:
        """Have its agent claim some jobs."""
        return [*await claimed(self.store, self.sessions[pod["metadata"]["uid"]], count)]

    async def finish(self, pod: Raw, *some: ClaimedJob) -> None:
        for one in some:
            await ended(self.store, self.sessions[pod["metadata"]["uid"]], one)

    async def depart(self, pod: Raw) -> None:
        """Have an agent that was asked to end do so, and its pod go."""
        assert "deletionTimestamp" in pod["metadata"]
        if (session := self.sessions.get(pod["metadata"]["uid"])) is not None:
            await self.store.deregister(session.key)
        about = pod["metadata"]
        del self.yard.objects[resources.PODS, about["namespace"], about["name"]]

    def ending(self, namespace: str = "lab") -> list[Raw]:
        return [pod for pod in self.yard.pods(namespace) if "deletionTimestamp" in pod["metadata"]]

    async def depart_all(self) -> None:
        for pod in self.yard.all(resources.PODS):
            if "deletionTimestamp" in pod["metadata"]:
                await self.depart(pod)


@pytest.fixture
def admit(store: Store, monkeypatch: pytest.MonkeyPatch) -> mock.AsyncMock:
    """Notes how pools are let into the store."""
    noting = mock.AsyncMock(wraps=store.grant_pool)
    monkeypatch.setattr(store, "grant_pool", noting)
    return noting


@pytest.fixture
def farm(yard: FakeCluster, store: Store, time: ManualClock) -> Farm:
    return Farm(yard, store, time)
