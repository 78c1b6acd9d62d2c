"""Workers that share the connections of the database."""

import asyncio

from tests.controller.workerpools.conftest import PoolHarness
from tests.controller.workerpools.fake_cluster import FakeCluster, conditions
from workron.store.api import Store
from workron_controller.kube import errors, resources
from workron_controller.workerpools.autoscaler import SCALE_DOWN_SECONDS


async def test_pools_share_the_connections_of_the_database(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pools = [cluster.apply_pool("lab", name, replicas=9) for name in ("a", "b")]
    controller = harness.new_controller(connections=4 * 10)
    await harness.round(controller)
    await harness.round(controller)
    assert cluster.replica_counts() == [5, 5]
    await harness.start_workers(controller)
    assert conditions(pools[0]) == {"Ready": "Ready", "Stalled": "ConnectionLimit"}
    assert "the pool gets 5 of 9 workers" in str(pools[0]["status"])


async def test_pool_waits_for_workers_of_another_pool_to_terminate_when_the_budget_is_used_up(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "a", replicas=10)
    controller = harness.new_controller(connections=4 * 10)
    await harness.start_workers(controller)
    cluster.apply_pool("lab", "b", replicas=3)
    await harness.round(controller)
    await harness.round(controller)
    assert sorted(cluster.replica_counts()) == [0, 7]
    await harness.terminate(harness.terminating()[0])
    await harness.round(controller)
    await harness.round(controller)
    assert sorted(cluster.replica_counts()) == [1, 7]
    await harness.terminate_pods()
    await harness.round(controller)
    await harness.round(controller)
    assert sorted(cluster.replica_counts()) == [3, 7]


async def test_workers_of_a_deleted_pool_keep_their_connections_until_they_end(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "a", replicas=6)
    controller = harness.new_controller(connections=4 * 10)
    await harness.start_workers(controller)
    del cluster.objects[resources.WORKERPOOLS, "lab", "a"]
    cluster.apply_pool("lab", "b", replicas=10)
    for _ in range(3):
        await harness.round(controller)
    assert cluster.replica_counts() == [4]
    await harness.deregister_all()
    await harness.round(controller)
    assert cluster.replica_counts() == [10]


async def test_jobs_of_draining_workers_need_no_other_workers(
    harness: PoolHarness, cluster: FakeCluster, store: Store
) -> None:
    cluster.apply_pool("lab", "gpu", slots=1)
    controller = harness.new_controller()
    await harness.submit(2)
    await harness.start_workers(controller)
    for pod in cluster.pods():
        await harness.claim(pod)
    draining, _ = await store.list_workers()
    await store.drain(draining.worker)
    await harness.round(controller, SCALE_DOWN_SECONDS)
    await harness.round(controller)
    assert cluster.replica_counts() == [1]
    [kept] = [pod for pod in cluster.pods() if pod not in harness.terminating()]
    assert kept["metadata"]["uid"] != draining.name
    assert kept["status"] != {}


async def test_draining_worker_is_replaced_when_its_replica_set_was_not_scaled_down(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu", replicas=1, slots=2)
    controller = harness.new_controller()
    await harness.submit()
    await harness.start_workers(controller)
    [marked] = cluster.pods()
    await harness.claim(marked)
    cluster.apply_pool("lab", "gpu", replicas=0, slots=2)
    cluster.fail("patch", resources.REPLICA_SETS, errors.TransientApiError("503 later"))
    await harness.round(controller)
    cluster.apply_pool("lab", "gpu", replicas=1, slots=2)
    await harness.submit()
    await harness.start_workers(controller)
    [other] = [pod for pod in cluster.pods() if pod not in harness.terminating()]
    assert other != marked
    assert len(await harness.claim(other)) == 1


async def test_new_leader_counts_workers_whose_pods_were_not_observed_yet(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("far", "a", replicas=10)
    await harness.start_workers(harness.new_controller(connections=4 * 10))
    cluster.apply_pool("lab", "b", replicas=3)
    cluster.unanswered.add("far")
    new_leader = harness.new_controller(connections=4 * 10)
    for _ in range(2):
        await new_leader.reconcile_all()
        while not cluster.objects_of(resources.REPLICA_SETS, "lab"):
            await asyncio.sleep(0)
        cluster.run_controllers()
    assert cluster.replica_counts() == [0]


async def test_workers_count_when_the_spec_of_their_pool_became_invalid(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "bad", replicas=6)
    controller = harness.new_controller(connections=4 * 10)
    await harness.start_workers(controller)
    cluster.apply_pool("lab", "bad", slots="many")
    good = cluster.apply_pool("lab", "good", replicas=10)
    await harness.round(controller)
    await harness.round(controller)
    assert conditions(good)["Stalled"] == "ConnectionLimit"
