"""One pool from its first job to its last worker."""

from tests.controller.workerpools.conftest import PoolHarness
from tests.controller.workerpools.fake_cluster import FakeCluster, conditions
from workron.core.model.status import WorkerPoolStatus
from workron.core.states import State
from workron.store.api import Store
from workron_controller.kube import errors, resources
from workron_controller.workerpools.autoscaler import SCALE_DOWN_SECONDS


async def test_worker_starts_and_runs_a_job_when_a_job_waits(
    harness: PoolHarness, cluster: FakeCluster, store: Store
) -> None:
    pool = cluster.apply_pool("lab", "gpu")
    controller = harness.new_controller()
    await harness.round(controller)
    assert cluster.writes() == ["status workerpools.workron.dev/status lab/gpu"]
    assert conditions(pool) == {"Ready": "ScaledToZero"}
    [job] = await harness.submit()
    await harness.round(controller)
    [pod] = cluster.pods()
    assert pool["status"]["desiredReplicas"] == 1
    assert conditions(pool) == {"not Ready": "Starting", "Reconciling": "Starting"}
    await harness.start_pod(pod)
    await harness.round(controller)
    assert conditions(pool) == {"Ready": "Ready"}
    await harness.finish(pod, *await harness.claim(pod))
    [row] = await store.get_jobs([job])
    assert row.state is State.SUCCEEDED


async def test_status_has_the_counters(harness: PoolHarness, cluster: FakeCluster) -> None:
    pool = cluster.apply_pool("lab", "gpu", slots=2)
    controller = harness.new_controller()
    await harness.submit(5)
    await harness.start_workers(controller)
    await harness.claim(cluster.pods()[0], 2)
    await harness.round(controller, 10)
    await harness.round(controller)
    WorkerPoolStatus.parse(pool["status"])
    assert {key: value for key, value in pool["status"].items() if key != "conditions"} == {
        "desiredReplicas": 3,
        "replicas": 3,
        "readyReplicas": 3,
        "busy": 2,
        "queued": 3,
        "selector": "app.kubernetes.io/managed-by=workron-controller,workron.dev/pool=gpu",
        "observedGeneration": 1,
    }


async def test_no_object_is_written_when_the_state_does_not_change(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu", minReplicas=2)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    await harness.round(controller)
    before = len(cluster.writes())
    for _ in range(5):
        await harness.round(controller, 20)
    assert len(cluster.writes()) == before


async def test_idle_workers_terminate_after_the_delay_and_busy_ones_when_their_jobs_end(
    harness: PoolHarness, cluster: FakeCluster, store: Store
) -> None:
    cluster.apply_pool("lab", "gpu", slots=1)
    controller = harness.new_controller()
    await harness.submit(3)
    await harness.start_workers(controller)
    first, second, third = cluster.pods()
    [one] = await harness.claim(second)
    for pod in (first, third):
        await harness.finish(pod, *await harness.claim(pod))
    await harness.round(controller, SCALE_DOWN_SECONDS - 10)
    assert harness.terminating() == []
    await harness.round(controller, 20)
    await harness.round(controller)
    assert harness.terminating() == [first, third]
    assert [row.is_draining for row in await store.list_workers()] == [True, False, True]
    await harness.terminate_pods()
    await harness.finish(second, one)
    await harness.round(controller, SCALE_DOWN_SECONDS)
    await harness.round(controller)
    assert harness.terminating() == [second]
    assert cluster.replica_counts() == [0]


async def test_new_revision_replaces_the_old_one_without_losing_capacity_when_the_image_changes(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", replicas=2)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    old = cluster.pods()
    await harness.submit(2)
    for pod in old:
        await harness.claim(pod)
    pool["metadata"]["generation"] += 1
    pool["spec"]["image"] = "custom:2"
    await harness.round(controller)
    assert harness.terminating() == []
    assert len(cluster.pods()) == 3
    await harness.start_pods()
    await harness.round(controller)
    assert len(harness.terminating()) == 1
    await harness.start_workers(controller)
    assert harness.terminating() == old
    await harness.terminate_pods()
    await harness.round(controller)
    assert cluster.replica_counts() == [2]
    images = {pod["spec"]["initContainers"][1]["image"] for pod in cluster.pods()}
    assert images == {"custom:2"}


async def test_pool_is_ignored_when_it_is_being_deleted(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", minReplicas=1)
    pool["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    await harness.round(harness.new_controller())
    assert cluster.writes() == []


async def test_new_replica_set_is_created_when_a_pool_is_deleted_and_created_again(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu", minReplicas=1)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    del cluster.objects[resources.WORKERPOOLS, "lab", "gpu"]
    again = cluster.apply_pool("lab", "gpu", minReplicas=1)
    await harness.round(controller)
    await harness.round(controller)
    [one] = cluster.objects_of(resources.REPLICA_SETS)
    assert one["metadata"]["ownerReferences"][0]["uid"] == again["metadata"]["uid"]


async def test_replicas_apply_at_once_when_a_user_sets_them(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu", replicas=3)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    assert len(cluster.pods()) == 3
    cluster.apply_pool("lab", "gpu", replicas=0)
    await harness.round(controller)
    assert len(harness.terminating()) == 3


async def test_create_is_retried_when_it_conflicts(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", minReplicas=1)
    controller = harness.new_controller()
    cluster.fail("create", resources.REPLICA_SETS, errors.ConflictError("409 exists"))
    await harness.round(controller)
    assert conditions(pool) == {"not Ready": "Starting", "Reconciling": "Starting"}
    await harness.start_workers(controller)
    assert conditions(pool) == {"Ready": "Ready"}


async def test_lease_is_updated_in_the_store_when_the_spec_changes(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu", minReplicas=1)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    cluster.apply_pool("lab", "gpu", minReplicas=1, lease="40s")
    await harness.round(controller)
    session = await harness.start_pod(cluster.pods()[0])
    assert session.lease_seconds == 40


async def test_status_is_written_after_a_delay_when_only_counters_change(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", minReplicas=1)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    await harness.round(controller)
    before = len(cluster.writes())
    await harness.submit(2)
    await harness.round(controller)
    assert len(cluster.writes()) == before
    await harness.round(controller, 10)
    await harness.round(controller)
    assert pool["status"]["queued"] == 2


async def test_new_generation_is_observed_at_once_when_the_pool_is_idle(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu")
    controller = harness.new_controller()
    await harness.round(controller)
    cluster.apply_pool("lab", "gpu", slots=7)
    await harness.round(controller)
    assert pool["status"]["observedGeneration"] == 2


async def test_replica_set_is_restored_when_another_client_changes_it(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu", replicas=2)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    [one] = cluster.objects_of(resources.REPLICA_SETS)
    for replicas in (5, 0):
        one["spec"]["replicas"] = replicas
        await harness.round(controller)
        assert cluster.replica_counts() == [2]
    del cluster.objects[resources.REPLICA_SETS, "lab", one["metadata"]["name"]]
    cluster.run_controllers()
    assert cluster.pods() == []
    await harness.start_workers(controller)
    assert len(cluster.pods()) == 2


async def test_replica_set_is_scaled_down_when_the_pod_to_mark_has_ended(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu", replicas=2)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    cluster.apply_pool("lab", "gpu", replicas=1)
    cluster.fail("patch", resources.PODS, errors.ObjectNotFoundError("404"))
    await harness.round(controller)
    assert cluster.replica_counts() == [1]
