"""Dead workers: their jobs are requeued, and then their pods are deleted."""

from typing import Any

import pytest

from tests.controller.workerpools import fake_cluster
from tests.controller.workerpools.conftest import PoolHarness
from tests.controller.workerpools.fake_cluster import FakeCluster, Raw
from workron.core.ids import JobId
from workron.core.states import State
from workron.store.api import Store
from workron_controller.kube import errors, resources
from workron_controller.workerpools.controller import WorkerPoolController

BusyWorker = tuple[WorkerPoolController, Raw, JobId]


@pytest.fixture
async def busy_worker(harness: PoolHarness, cluster: FakeCluster) -> BusyWorker:
    """A controller, the pod of a worker on a node, and the job that the worker runs."""
    cluster.add(resources.NODES, None, "node", spec={})
    cluster.apply_pool("lab", "gpu")
    controller = harness.new_controller()
    [job] = await harness.submit()
    await harness.start_workers(controller)
    [pod] = cluster.pods()
    await harness.claim(pod)
    return controller, pod, job


async def _state(store: Store, job: JobId) -> State:
    [row] = await store.get_jobs([job])
    return row.state


async def test_worker_is_reaped_when_all_containers_of_its_pod_have_ended(
    busy_worker: BusyWorker, cluster: FakeCluster, harness: PoolHarness, store: Store
) -> None:
    controller, pod, job = busy_worker
    fake_cluster.set_ended(pod)
    await harness.round(controller)
    assert await _state(store, job) is State.QUEUED
    assert await store.list_workers() == []
    assert pod not in cluster.pods()


async def test_worker_is_reaped_when_its_node_does_not_exist(
    busy_worker: BusyWorker, cluster: FakeCluster, harness: PoolHarness, store: Store
) -> None:
    controller, pod, job = busy_worker
    fake_cluster.set_unready(pod)
    await harness.round(controller)
    assert await _state(store, job) is State.RUNNING
    del cluster.objects[resources.NODES, None, "node"]
    await harness.round(controller)
    assert await _state(store, job) is State.QUEUED
    assert pod not in cluster.pods()


async def test_worker_is_reaped_when_its_node_is_out_of_service(
    busy_worker: BusyWorker, cluster: FakeCluster, harness: PoolHarness, store: Store
) -> None:
    controller, pod, job = busy_worker
    fake_cluster.set_unready(pod)
    node = cluster.objects[resources.NODES, None, "node"]
    node["spec"]["taints"] = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]
    await harness.round(controller)
    assert await _state(store, job) is State.QUEUED


@pytest.mark.parametrize("change", ["unready", "terminating", "deleted"])
async def test_worker_is_not_reaped_when_its_pod_is_only_unready_or_deleted(
    busy_worker: BusyWorker, cluster: FakeCluster, harness: PoolHarness, store: Store, change: str
) -> None:
    controller, pod, job = busy_worker
    fake_cluster.set_unready(pod)
    if change == "terminating":
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if change == "deleted":
        del cluster.objects[resources.PODS, "lab", pod["metadata"]["name"]]
    await harness.round(controller)
    await harness.round(controller)
    assert await _state(store, job) is State.RUNNING


async def test_worker_is_not_reaped_when_its_node_cannot_be_read(
    busy_worker: BusyWorker, cluster: FakeCluster, harness: PoolHarness, store: Store
) -> None:
    controller, pod, job = busy_worker
    fake_cluster.set_unready(pod)
    cluster.fail("get", resources.NODES, errors.UnreachableError("no answer"), times=99)
    await harness.round(controller)
    assert await _state(store, job) is State.RUNNING
    assert pod in cluster.pods()


async def test_pool_is_scaled_when_nodes_are_forbidden(
    busy_worker: BusyWorker, cluster: FakeCluster, harness: PoolHarness, store: Store
) -> None:
    controller, pod, job = busy_worker
    fake_cluster.set_unready(pod)
    cluster.fail("get", resources.NODES, errors.ForbiddenError("403"), times=99)
    await harness.submit(8)
    await harness.round(controller)
    assert await _state(store, job) is State.RUNNING
    assert cluster.replica_counts() == [3]


async def test_worker_is_reaped_before_its_pod_is_deleted(
    busy_worker: BusyWorker,
    cluster: FakeCluster,
    harness: PoolHarness,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller, pod, _ = busy_worker
    order: list[str] = []

    def record(owner: object, name: str) -> None:
        method = getattr(owner, name)

        async def recorded(*arguments: Any, **options: Any) -> Any:
            order.append(name)
            return await method(*arguments, **options)

        monkeypatch.setattr(owner, name, recorded)

    record(store, "reap")
    record(cluster, "delete")
    fake_cluster.set_ended(pod)
    await harness.round(controller)
    assert order == ["reap", "delete"]


async def test_pod_of_another_owner_is_never_deleted(
    busy_worker: BusyWorker, cluster: FakeCluster, harness: PoolHarness
) -> None:
    controller, pod, _ = busy_worker
    labels = dict(pod["metadata"]["labels"])
    owners = [{"uid": "other-uid", "controller": True}]
    metadata = {"labels": labels, "ownerReferences": owners}
    other = {"uid": "other-uid"}
    cluster.add(resources.REPLICA_SETS, "lab", "other", metadata=other, spec={"replicas": 0})
    other_pod = cluster.add(resources.PODS, "lab", "other", metadata=metadata, spec={}, status={})
    fake_cluster.set_ended(other_pod)
    await harness.round(controller)
    assert cluster.objects[resources.PODS, "lab", "other"] is other_pod


async def test_dead_worker_is_replaced(
    busy_worker: BusyWorker, cluster: FakeCluster, harness: PoolHarness
) -> None:
    controller, pod, _ = busy_worker
    fake_cluster.set_ended(pod)
    await harness.round(controller)
    await harness.round(controller)
    [successor] = cluster.pods()
    await harness.start_pod(successor)
    assert len(await harness.claim(successor)) == 1


async def test_node_is_not_read_when_the_worker_is_ready(
    busy_worker: BusyWorker, cluster: FakeCluster, harness: PoolHarness
) -> None:
    controller, _, _ = busy_worker
    await harness.round(controller)
    assert ("get", resources.NODES.at(name="node")) not in cluster.requests


async def test_finished_pod_is_deleted_when_it_has_no_worker(
    busy_worker: BusyWorker, cluster: FakeCluster, harness: PoolHarness, store: Store
) -> None:
    controller, pod, job = busy_worker
    pod["status"] = {"phase": "Failed", "reason": "Evicted"}
    await harness.round(controller)
    assert await _state(store, job) is State.RUNNING
    assert pod in cluster.pods()
    await store.deregister(harness.sessions[pod["metadata"]["uid"]].key)
    await harness.round(controller)
    assert pod not in cluster.pods()


async def test_pool_is_scaled_when_a_dead_pod_was_deleted_by_another_client(
    busy_worker: BusyWorker, cluster: FakeCluster, harness: PoolHarness
) -> None:
    controller, pod, _ = busy_worker
    fake_cluster.set_ended(pod)
    cluster.fail("delete", resources.PODS, errors.ObjectNotFoundError("404"))
    await harness.submit(8)
    await harness.round(controller)
    assert cluster.replica_counts() == [3]
