"""A WorkerPool controller with a cluster and a store in memory, and agents for its pods."""

import asyncio
import base64
import random
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import pytest

from tests.controller.cluster import claimed, ended
from tests.controller.manual_clock import ManualClock
from tests.controller.workerpools import fake_cluster
from tests.controller.workerpools.fake_cluster import FakeCluster, Raw
from workron.core import planner
from workron.core.clock import Sleep
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


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@dataclass
class PoolHarness:
    """Runs rounds of a controller, and stands in for the agents in the cluster's pods."""

    cluster: FakeCluster
    store: Store
    time: ManualClock
    sessions: dict[str, Session] = field(default_factory=dict)
    """By the uid of their pod."""

    recorded_events: list[KubernetesEvent] = field(default_factory=list)
    controllers: list[WorkerPoolController] = field(default_factory=list)

    def new_controller(
        self,
        connections: int | None = None,
        namespaces: Sequence[str] = (),
        task_timeout: float = 60,
        sleep: Sleep = asyncio.sleep,
        **config: Any,
    ) -> WorkerPoolController:
        """Create a controller, as the replica that becomes the leader."""
        deps = PoolDependencies(
            self.cluster,
            RetryingCalls(self.time, random.Random(), seconds=0),
            self.store,
            ConnectionBudget(connections),
            PoolConfig("ours:1", namespace="workron", **config),
            namespaces,
            self.time,
            self.recorded_events.append,
        )
        controller = WorkerPoolController(deps, task_timeout=task_timeout, sleep=sleep)
        self.controllers.append(controller)
        return controller

    async def submit(
        self, count: int = 1, *, namespace: str = "lab", pool: str = "gpu"
    ) -> list[JobId]:
        """Submit jobs to a pool."""
        return [await self._submit(namespace, pool) for _ in range(count)]

    async def _submit(self, namespace: str, pool: str) -> JobId:
        metadata = {"name": f"job-{uuid.uuid4().hex}", "namespace": namespace}
        raw = {"metadata": metadata, "spec": {"command": "true", "pool": pool}}
        kind = {"apiVersion": "workron.dev/v1alpha1", "kind": "Job"}
        [submitted] = await self.store.submit(
            [planner.plan_job(Job.parse(kind | raw), uuid.uuid4())]
        )
        return submitted.run

    async def round(self, controller: WorkerPoolController, seconds: float = 2) -> None:
        """Reconcile all pools, run the cluster's own controllers, and move the clock."""
        await controller.reconcile_all()
        await controller.wait_idle()
        self.cluster.run_controllers()
        self.time.advance(seconds)

    async def start_workers(self, controller: WorkerPoolController, seconds: float = 2) -> None:
        """Run a round, start all new pods, and run another round."""
        await self.round(controller, seconds)
        await self.start_pods()
        await self.round(controller, seconds)

    async def start_pods(self) -> None:
        for pod in self.cluster.objects_of(resources.PODS):
            if not pod["status"] and "deletionTimestamp" not in pod["metadata"]:
                await self.start_pod(pod)

    async def start_pod(self, pod: Raw, node: str = "node") -> Session:
        """Make a pod ready; its agent reads its Secret and registers."""
        metadata = pod["metadata"]
        fake_cluster.set_ready(pod, node)
        [agent] = pod["spec"]["containers"]
        slots = int(agent["args"][agent["args"].index("--slots") + 1])
        name = f"workron-pool-{metadata['labels']['workron.dev/pool']}"
        secret = self.cluster.objects[resources.SECRETS, metadata["namespace"], name]
        token = base64.b64decode(secret["data"]["token"]).decode()
        registration = Registration(token, metadata["uid"], uuid.uuid4(), slots)
        session = self.sessions[metadata["uid"]] = await self.store.register(registration)
        await self.store.heartbeat(session.key)
        return session

    async def claim(self, pod: Raw, count: int = 1) -> list[ClaimedJob]:
        return [*await claimed(self.store, self.sessions[pod["metadata"]["uid"]], count)]

    async def finish(self, pod: Raw, *jobs: ClaimedJob) -> None:
        for job in jobs:
            await ended(self.store, self.sessions[pod["metadata"]["uid"]], job)

    def terminating(self, namespace: str = "lab") -> list[Raw]:
        return [
            pod for pod in self.cluster.pods(namespace) if "deletionTimestamp" in pod["metadata"]
        ]

    async def terminate(self, pod: Raw) -> None:
        """Deregister the agent of a terminating pod, and remove the pod."""
        metadata = pod["metadata"]
        assert "deletionTimestamp" in metadata
        if (session := self.sessions.get(metadata["uid"])) is not None:
            await self.store.deregister(session.key)
        del self.cluster.objects[resources.PODS, metadata["namespace"], metadata["name"]]

    async def terminate_pods(self) -> None:
        for pod in self.terminating():
            await self.terminate(pod)

    async def deregister_all(self) -> None:
        for session in self.sessions.values():
            await self.store.deregister(session.key)


@pytest.fixture
def grants(store: Store, monkeypatch: pytest.MonkeyPatch) -> mock.AsyncMock:
    """Record the grants to pools."""
    recorder = mock.AsyncMock(wraps=store.grant_pool)
    monkeypatch.setattr(store, "grant_pool", recorder)
    return recorder


@pytest.fixture
def harness(cluster: FakeCluster, store: Store, time: ManualClock) -> Iterator[PoolHarness]:
    harness = PoolHarness(cluster, store, time)
    yield harness
    for controller in harness.controllers:
        controller.stop()
