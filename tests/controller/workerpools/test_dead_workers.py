"""Workers that are dead for certain: their jobs go on at once, and then their pods are removed."""

from typing import Any

import pytest

from tests.controller.workerpools import fake_cluster
from tests.controller.workerpools.conftest import Begin, Farm
from tests.controller.workerpools.fake_cluster import FakeCluster, Raw
from workron.core.ids import JobId
from workron.core.states import State
from workron.store.api import Store
from workron_controller.kube import errors, resources
from workron_controller.workerpools.controller import WorkerPoolController

Scene = tuple[WorkerPoolController, Raw, JobId]


@pytest.fixture
async def scene(begin: Begin, yard: FakeCluster, farm: Farm) -> Scene:
    """A worker that runs a job, on a node."""
    yard.put(resources.NODES, None, "node", spec={})
    yard.pool("lab", "gpu")
    controller = begin()
    [job] = await farm.submit()
    await farm.come_up(controller)
    [pod] = yard.pods()
    await farm.take(pod)
    return controller, pod, job


async def _state(store: Store, job: JobId) -> State:
    [row] = await store.get_jobs([job])
    return row.state


async def test_pod_whose_containers_have_all_ended_is_dead(
    scene: Scene, yard: FakeCluster, farm: Farm, store: Store
) -> None:
    controller, pod, job = scene
    fake_cluster.ended(pod)
    await farm.turn(controller)
    assert await _state(store, job) is State.QUEUED
    assert await store.list_workers() == []
    assert pod not in yard.pods()


async def test_pod_on_a_node_that_is_gone_is_dead(
    scene: Scene, yard: FakeCluster, farm: Farm, store: Store
) -> None:
    controller, pod, job = scene
    fake_cluster.unready(pod)
    await farm.turn(controller)
    assert await _state(store, job) is State.RUNNING
    del yard.objects[resources.NODES, None, "node"]
    await farm.turn(controller)
    assert await _state(store, job) is State.QUEUED
    assert pod not in yard.pods()


async def test_pod_on_a_node_that_is_out_of_service_is_dead(
    scene: Scene, yard: FakeCluster, farm: Farm, store: Store
) -> None:
    controller, pod, job = scene
    fake_cluster.unready(pod)
    node = yard.objects[resources.NODES, None, "node"]
    node["spec"]["taints"] = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]
    await farm.turn(controller)
    assert await _state(store, job) is State.QUEUED


@pytest.mark.parametrize("change", ["unready", "asked to end", "forced out"])
async def test_pod_that_is_only_silent_or_deleted_is_not(
    scene: Scene, yard: FakeCluster, farm: Farm, store: Store, change: str
) -> None:
    controller, pod, job = scene
    fake_cluster.unready(pod)
    if change == "asked to end":
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if change == "forced out":
        del yard.objects[resources.PODS, "lab", pod["metadata"]["name"]]
    await farm.turn(controller)
    await farm.turn(controller)
    assert await _state(store, job) is State.RUNNING


async def test_node_of_which_no_answer_comes_is_not_taken_for_gone(
    scene: Scene, yard: FakeCluster, farm: Farm, store: Store
) -> None:
    controller, pod, job = scene
    fake_cluster.unready(pod)
    yard.fail("get", resources.NODES, errors.UnreachableError("no answer"), times=99)
    await farm.turn(controller)
    assert await _state(store, job) is State.RUNNING
    assert pod in yard.pods()


async def test_pool_goes_on_where_nodes_may_not_be_looked_at(
    scene: Scene, yard: FakeCluster, farm: Farm, store: Store
) -> None:
    controller, pod, job = scene
    fake_cluster.unready(pod)
    yard.fail("get", resources.NODES, errors.ForbiddenError("403"), times=99)
    await farm.submit(8)
    await farm.turn(controller)
    assert await _state(store, job) is State.RUNNING
    assert yard.replicas() == [3]


async def test_worker_is_fenced_off_before_its_pod_is_removed(
    scene: Scene, yard: FakeCluster, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller, pod, _ = scene
    order: list[str] = []

    def noted(what: object, name: str) -> None:
        verb = getattr(what, name)

        async def note(*given: Any, **about: Any) -> Any:
            order.append(name)
            return await verb(*given, **about)

        monkeypatch.setattr(what, name, note)

    noted(store, "reap")
    noted(yard, "delete")
    fake_cluster.ended(pod)
    await farm.turn(controller)
    assert order == ["reap", "delete"]


async def test_pod_that_is_none_of_ours_is_never_removed(
    scene: Scene, yard: FakeCluster, farm: Farm
) -> None:
    controller, pod, _ = scene
    labels = dict(pod["metadata"]["labels"])
    owners = [{"uid": "somebody", "controller": True}]
    metadata = {"labels": labels, "ownerReferences": owners}
    somebody = {"uid": "somebody"}
    yard.put(resources.REPLICA_SETS, "lab", "theirs", metadata=somebody, spec={"replicas": 0})
    theirs = yard.put(resources.PODS, "lab", "theirs", metadata=metadata, spec={}, status={})
    fake_cluster.ended(theirs)
    await farm.turn(controller)
    assert yard.objects[resources.PODS, "lab", "theirs"] is theirs


async def test_dead_worker_has_a_successor(scene: Scene, yard: FakeCluster, farm: Farm) -> None:
    controller, pod, _ = scene
    fake_cluster.ended(pod)
    await farm.turn(controller)
    await farm.turn(controller)
    [successor] = yard.pods()
    await farm.start(successor)
    assert len(await farm.take(successor)) == 1


async def test_node_of_a_worker_that_is_ready_is_not_asked_for(
    scene: Scene, yard: FakeCluster, farm: Farm
) -> None:
    controller, _, _ = scene
    await farm.turn(controller)
    assert ("get", resources.NODES.at(name="node")) not in yard.asked


async def test_pod_that_is_over_is_removed_when_it_has_no_worker(
    scene: Scene, yard: FakeCluster, farm: Farm, store: Store
) -> None:
    controller, pod, job = scene
    pod["status"] = {"phase": "Failed", "reason": "Evicted"}
    await farm.turn(controller)
    assert await _state(store, job) is State.RUNNING
    assert pod in yard.pods()
    await store.deregister(farm.sessions[pod["metadata"]["uid"]].key)
    await farm.turn(controller)
    assert pod not in yard.pods()
