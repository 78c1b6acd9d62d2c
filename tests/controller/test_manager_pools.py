"""The pool controller against the fake API server over HTTP."""

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
    created = WorkerPoolController(deps)
    yield created
    created.stop()


async def _reconcile(controller: WorkerPoolController, time: ManualClock) -> None:
    time.advance(2)
    await controller.reconcile_all()
    await controller.wait_idle()


async def _submit(store: Store) -> JobId:
    raw = cluster.job(pool="gpu")
    raw["metadata"]["namespace"] = "lab"
    [created] = await store.submit([planner.plan_job(Job.parse(raw), cluster.uid_of(raw))])
    return created.run


def _pod(api: FakeApi) -> Json:
    """Create the pod of the only ReplicaSet, and make it ready."""
    [replica_set] = api.storage.all(REPLICA_SET, "lab")
    owner = {"kind": "ReplicaSet", "name": replica_set["metadata"]["name"], "controller": True}
    template = replica_set["spec"]["template"]
    metadata = {
        "labels": template["metadata"]["labels"],
        "ownerReferences": [
            owner | {"uid": replica_set["metadata"]["uid"], "apiVersion": "apps/v1"}
        ],
    }
    spec = template["spec"] | {"nodeName": "node"}
    created = api.add(POD, "worker", "lab", metadata=metadata, spec=spec)
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    api.edit(POD, "worker", "lab", status=status)
    return created


async def _register(api: FakeApi, store: Store, pod: Json) -> Session:
    [secret] = api.storage.all(SECRET, "lab")
    token = base64.b64decode(secret["data"]["token"]).decode()
    uid = pod["metadata"]["uid"]
    return await store.register(Registration(token, uid, uuid.uuid4(), slots=4))


def _status(api: FakeApi) -> Json:
    found = api.find(POOL, "gpu", "lab")
    assert found is not None
    status: Json = found["status"]
    return status


async def test_pool_scales_up_for_a_job_and_releases_it_when_the_worker_is_dead(
    api: FakeApi, controller: WorkerPoolController, store: Store, time: ManualClock
) -> None:
    api.add(NODE, "node")
    api.add(POOL, "gpu", "lab", spec={"image": "theirs:2"})
    job = await _submit(store)
    await _reconcile(controller, time)
    [replica_set] = api.storage.all(REPLICA_SET, "lab")
    assert (replica_set["spec"]["replicas"], _status(api)["desiredReplicas"]) == (1, 1)
    pod = _pod(api)
    session = await _register(api, store, pod)
    await cluster.claimed(store, session)
    await _reconcile(controller, time)
    assert _status(api)["readyReplicas"] == 1
    api.remove(NODE, "node")
    api.edit(POD, "worker", "lab", status={"conditions": [{"type": "Ready", "status": "False"}]})
    await _reconcile(controller, time)
    [row] = await store.get_jobs([job])
    assert row.state is State.QUEUED
    assert api.find(POD, "worker", "lab") is None


async def test_worker_is_drained_when_its_pool_is_scaled_to_zero(
    api: FakeApi, controller: WorkerPoolController, store: Store, time: ManualClock
) -> None:
    api.add(POOL, "gpu", "lab", spec={"replicas": 1})
    await _reconcile(controller, time)
    await _register(api, store, _pod(api))
    api.edit(POOL, "gpu", "lab", spec={"replicas": 0})
    await _reconcile(controller, time)
    [replica_set] = api.storage.all(REPLICA_SET, "lab")
    [pod] = api.storage.all(POD, "lab")
    assert replica_set["spec"]["replicas"] == 0
    assert pod["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"] == "-1000"
    assert [worker.is_draining for worker in await store.list_workers()] == [True]


async def test_problem_names_the_command_when_permissions_are_missing(
    api: FakeApi, controller: WorkerPoolController, time: ManualClock
) -> None:
    api.add(POOL, "gpu", "lab", spec={"minReplicas": 1})
    api.faults.refuse(403, plural="replicasets", times=99)
    await _reconcile(controller, time)
    reason = controller.blocking_reason("lab", "gpu")
    assert reason is not None
    assert reason.reason == "NamespaceNotEnabled"
    assert "--serviceaccount=workron:workron-controller --namespace lab" in reason.message
    [stalled] = [
        replica_set
        for replica_set in _status(api)["conditions"]
        if replica_set["type"] == "Stalled"
    ]
    assert stalled["reason"] == "NamespaceNotEnabled"


async def test_replica_set_is_created_in_the_next_round_when_the_first_create_conflicts(
    api: FakeApi, controller: WorkerPoolController, time: ManualClock
) -> None:
    api.add(POOL, "gpu", "lab", spec={"minReplicas": 1})
    api.faults.refuse(409, verb="create", plural="replicasets", times=1)
    await _reconcile(controller, time)
    assert api.storage.all(REPLICA_SET, "lab") == []
    await _reconcile(controller, time)
    assert len(api.storage.all(REPLICA_SET, "lab")) == 1


async def test_queue_metrics_exist_only_while_pools_are_reconciled(
    controller: WorkerPoolController, store: Store, time: ManualClock
) -> None:
    registry = CollectorRegistry()
    registry.register(QueueMetrics(controller, time))
    assert b"workron_queue_depth{" not in generate_latest(registry)
    await _submit(store)
    time.advance(8)
    await _reconcile(controller, time)
    text = generate_latest(registry).decode()
    assert 'workron_queue_depth{namespace="lab",pool="gpu"} 1.0' in text
    assert 'workron_queue_oldest_seconds{namespace="lab",pool="gpu"} 10.0' in text
    controller.stop()
    assert b"workron_queue_depth{" not in generate_latest(registry)


async def _requests_in_a_minute(
    api: FakeApi, controller: WorkerPoolController, time: ManualClock
) -> dict[str, int]:
    """Count the requests in a minute of rounds, after some rounds until nothing changes."""
    for _ in range(10):
        await _reconcile(controller, time)
    before = len(api.requests.all)
    for _ in range(30):
        await _reconcile(controller, time)
    requests = [
        f"{replica_set.verb} {replica_set.plural}"
        for replica_set in api.requests.all[before:]
        if replica_set.kind
    ]
    return {replica_set: requests.count(replica_set) for replica_set in sorted(set(requests))}


async def test_idle_pool_is_read_four_times_a_minute_and_not_written(
    api: FakeApi, controller: WorkerPoolController, time: ManualClock
) -> None:
    api.add(POOL, "gpu", "lab", spec={})
    counts = await _requests_in_a_minute(api, controller, time)
    assert counts.keys() == {"list pods", "list replicasets", "list workerpools"}
    assert counts.pop("list workerpools") == 30
    assert sum(counts.values()) <= 2 * 4


async def test_busy_pool_is_read_and_not_written_when_nothing_changes(
    api: FakeApi, controller: WorkerPoolController, store: Store, time: ManualClock
) -> None:
    api.add(POOL, "gpu", "lab", spec={"replicas": 1})
    await _reconcile(controller, time)
    await _register(api, store, _pod(api))
    counts = await _requests_in_a_minute(api, controller, time)
    assert counts == {"list pods": 30, "list replicasets": 30, "list workerpools": 30}
