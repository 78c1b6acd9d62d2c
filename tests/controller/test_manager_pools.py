"""Pools over HTTP: what is really asked of an API server, by the parts that really ask it."""

import base64
import uuid
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from tests.controller import cluster
from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import NODE, POD, POOL, REPLICA_SET, SECRET, Json
from tests.controller.manual_clock import ManualClock
from workron.core import planner
from workron.core.ids import JobId
from workron.core.model.job import Job
from workron.core.states import State
from workron.store.api import Store
from workron.store.types import Registration, Session
from workron_controller.kube.client import ApiClient, RetryingCalls
from workron_controller.metrics import QueueMetrics
from workron_controller.workerpools.autoscaler import ConnectionBudget
from workron_controller.workerpools.config import PoolConfig, PoolDependencies
from workron_controller.workerpools.controller import WorkerPoolController


@pytest.fixture
async def controller(
    server: ApiClient, retrying: RetryingCalls, store: Store, time: ManualClock
) -> AsyncIterator[WorkerPoolController]:
    settings = PoolConfig("ours:1", namespace="workron")
    deps = PoolDependencies(
        server, retrying, store, ConnectionBudget(), settings, ("lab",), time, lambda _: None
    )
    made = WorkerPoolController(deps)
    yield made
    made.stop()


async def _look(controller: WorkerPoolController, time: ManualClock) -> None:
    time.turn(2)
    await controller.reconcile_all()
    await controller.wait_idle()


async def _submit(store: Store) -> JobId:
    raw = cluster.job(pool="gpu")
    raw["metadata"]["namespace"] = "lab"
    [made] = await store.submit([planner.plan_job(Job.parse(raw), cluster.uid_of(raw))])
    return made.run


def _pod(api: FakeApi) -> Json:
    """Make the pod that the one set wants, and have it be ready."""
    [one] = api.storage.all(REPLICA_SET, "lab")
    owner = {"kind": "ReplicaSet", "name": one["metadata"]["name"], "controller": True}
    template = one["spec"]["template"]
    metadata = {
        "labels": template["metadata"]["labels"],
        "ownerReferences": [owner | {"uid": one["metadata"]["uid"], "apiVersion": "apps/v1"}],
    }
    spec = template["spec"] | {"nodeName": "node"}
    made = api.add(POD, "worker", "lab", metadata=metadata, spec=spec)
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    api.edit(POD, "worker", "lab", status=status)
    return made


async def _enter(api: FakeApi, store: Store, pod: Json) -> Session:
    [secret] = api.storage.all(SECRET, "lab")
    token = base64.b64decode(secret["data"]["token"]).decode()
    uid = pod["metadata"]["uid"]
    return await store.register(Registration(token, uid, uuid.uuid4(), slots=4))


def _status(api: FakeApi) -> Json:
    found = api.find(POOL, "gpu", "lab")
    assert found is not None
    status: Json = found["status"]
    return status


async def test_pool_lives_from_its_first_job_to_the_death_of_its_worker(
    api: FakeApi, controller: WorkerPoolController, store: Store, time: ManualClock
) -> None:
    api.add(NODE, "node")
    api.add(POOL, "gpu", "lab", spec={"image": "theirs:2"})
    job = await _submit(store)
    await _look(controller, time)
    [one] = api.storage.all(REPLICA_SET, "lab")
    assert (one["spec"]["replicas"], _status(api)["desiredReplicas"]) == (1, 1)
    pod = _pod(api)
    session = await _enter(api, store, pod)
    await cluster.claimed(store, session)
    await _look(controller, time)
    assert _status(api)["readyReplicas"] == 1
    api.remove(NODE, "node")
    api.edit(POD, "worker", "lab", status={"conditions": [{"type": "Ready", "status": "False"}]})
    await _look(controller, time)
    [row] = await store.get_jobs([job])
    assert row.state is State.QUEUED
    assert api.find(POD, "worker", "lab") is None


async def test_pool_that_is_scaled_to_nothing_has_its_worker_chosen_and_its_set_shrunk(
    api: FakeApi, controller: WorkerPoolController, store: Store, time: ManualClock
) -> None:
    api.add(POOL, "gpu", "lab", spec={"replicas": 1})
    await _look(controller, time)
    await _enter(api, store, _pod(api))
    api.edit(POOL, "gpu", "lab", spec={"replicas": 0})
    await _look(controller, time)
    [one] = api.storage.all(REPLICA_SET, "lab")
    [pod] = api.storage.all(POD, "lab")
    assert one["spec"]["replicas"] == 0
    assert pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"] == "-1000"
    assert [worker.is_draining for worker in await store.list_workers()] == [True]


async def test_rights_that_are_missing_are_told_as_what_would_give_them(
    api: FakeApi, controller: WorkerPoolController, time: ManualClock
) -> None:
    api.add(POOL, "gpu", "lab", spec={"minReplicas": 1})
    api.faults.refuse(403, plural="replicasets", times=99)
    await _look(controller, time)
    hint = controller.blocking_reason("lab", "gpu")
    assert hint is not None
    assert hint.reason == "NamespaceNotEnabled"
    assert "--serviceaccount=workron:workron-controller --namespace lab" in hint.message
    [stalled] = [one for one in _status(api)["conditions"] if one["type"] == "Stalled"]
    assert stalled["reason"] == "NamespaceNotEnabled"


async def test_set_that_was_made_meanwhile_is_taken_as_it_is(
    api: FakeApi, controller: WorkerPoolController, time: ManualClock
) -> None:
    api.add(POOL, "gpu", "lab", spec={"minReplicas": 1})
    api.faults.refuse(409, verb="create", plural="replicasets", times=1)
    await _look(controller, time)
    assert api.storage.all(REPLICA_SET, "lab") == []
    await _look(controller, time)
    assert len(api.storage.all(REPLICA_SET, "lab")) == 1


async def test_queues_are_told_to_prometheus_by_who_looks_after_them(
    controller: WorkerPoolController, store: Store, time: ManualClock
) -> None:
    registry = CollectorRegistry()
    registry.register(QueueMetrics(controller, time))
    assert b"workron_queue_depth{" not in generate_latest(registry)
    await _submit(store)
    time.turn(8)
    await _look(controller, time)
    told = generate_latest(registry).decode()
    assert 'workron_queue_depth{namespace="lab",pool="gpu"} 1.0' in told
    assert 'workron_queue_oldest_seconds{namespace="lab",pool="gpu"} 10.0' in told
    controller.stop()
    assert b"workron_queue_depth{" not in generate_latest(registry)


async def _asked_in_a_minute(
    api: FakeApi, controller: WorkerPoolController, time: ManualClock
) -> dict[str, int]:
    """Count what is asked for in a minute of looks, after some that settle all."""
    for _ in range(10):
        await _look(controller, time)
    before = len(api.requests.all)
    for _ in range(30):
        await _look(controller, time)
    said = [f"{one.verb} {one.plural}" for one in api.requests.all[before:] if one.kind]
    return {one: said.count(one) for one in sorted(set(said))}


async def test_idle_pool_is_looked_at_four_times_a_minute_and_not_written_to(
    api: FakeApi, controller: WorkerPoolController, time: ManualClock
) -> None:
    api.add(POOL, "gpu", "lab", spec={})
    asked = await _asked_in_a_minute(api, controller, time)
    assert asked.keys() == {"list pods", "list replicasets", "list workerpools"}
    assert asked.pop("list workerpools") == 30
    assert sum(asked.values()) <= 2 * 4


async def test_pool_that_works_and_does_not_change_is_looked_at_and_not_written_to(
    api: FakeApi, controller: WorkerPoolController, store: Store, time: ManualClock
) -> None:
    api.add(POOL, "gpu", "lab", spec={"replicas": 1})
    await _look(controller, time)
    await _enter(api, store, _pod(api))
    asked = await _asked_in_a_minute(api, controller, time)
    assert asked == {"list pods": 30, "list replicasets": 30, "list workerpools": 30}
