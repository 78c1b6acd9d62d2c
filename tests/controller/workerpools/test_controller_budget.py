"""Workers that leave, that are not seen yet, or that another pool has, are counted all the same."""

import asyncio

from tests.controller.workerpools.conftest import Begin, Farm
from tests.controller.workerpools.fake_cluster import FakeCluster, conditions
from workron.store.api import Store
from workron_controller.kube import errors, resources
from workron_controller.workerpools.autoscaler import SCALE_DOWN_SECONDS


async def test_pools_share_the_connections_of_the_database(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    pools = [yard.pool("lab", name, replicas=9) for name in ("a", "b")]
    controller = begin(connections=4 * 10)
    await farm.turn(controller)
    await farm.turn(controller)
    assert yard.replicas() == [5, 5]
    await farm.come_up(controller)
    assert conditions(pools[0]) == {"Ready": "Ready", "Stalled": "ConnectionLimit"}
    assert "the pool gets 5 of 9 workers" in str(pools[0]["status"])


async def test_pool_gets_no_worker_before_another_one_has_given_way(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "a", replicas=10)
    controller = begin(connections=4 * 10)
    await farm.come_up(controller)
    yard.pool("lab", "b", replicas=3)
    await farm.turn(controller)
    await farm.turn(controller)
    assert sorted(yard.replicas()) == [0, 7]
    await farm.depart(farm.ending()[0])
    await farm.turn(controller)
    await farm.turn(controller)
    assert sorted(yard.replicas()) == [1, 7]
    await farm.depart_all()
    await farm.turn(controller)
    await farm.turn(controller)
    assert sorted(yard.replicas()) == [3, 7]


async def test_workers_of_a_pool_that_was_deleted_have_their_connections_until_they_end(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "a", replicas=6)
    controller = begin(connections=4 * 10)
    await farm.come_up(controller)
    del yard.objects[resources.WORKERPOOLS, "lab", "a"]
    yard.pool("lab", "b", replicas=10)
    for _ in range(3):
        await farm.turn(controller)
    assert yard.replicas() == [4]
    for session in farm.sessions.values():
        await farm.store.deregister(session.key)
    await farm.turn(controller)
    assert yard.replicas() == [10]


async def test_jobs_of_workers_that_leave_ask_for_no_others(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store
) -> None:
    yard.pool("lab", "gpu", slots=1)
    controller = begin()
    await farm.submit(2)
    await farm.come_up(controller)
    for pod in yard.pods():
        await farm.take(pod)
    leaving, _ = await store.list_workers()
    await store.drain(leaving.worker)
    await farm.turn(controller, SCALE_DOWN_SECONDS)
    await farm.turn(controller)
    assert yard.replicas() == [1]
    [stays] = [pod for pod in yard.pods() if pod not in farm.ending()]
    assert stays["metadata"]["uid"] != leaving.name
    assert stays["status"] != {}


async def test_worker_that_was_chosen_in_vain_keeps_no_job_waiting(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "gpu", replicas=1, slots=2)
    controller = begin()
    await farm.submit()
    await farm.come_up(controller)
    [chosen] = yard.pods()
    await farm.take(chosen)
    yard.pool("lab", "gpu", replicas=0, slots=2)
    yard.fail("patch", resources.REPLICA_SETS, errors.TransientApiError("503 later"))
    await farm.turn(controller)
    yard.pool("lab", "gpu", replicas=1, slots=2)
    await farm.submit()
    await farm.come_up(controller)
    [other] = [pod for pod in yard.pods() if pod not in farm.ending()]
    assert other != chosen
    assert len(await farm.take(other)) == 1


async def test_new_leader_counts_workers_that_it_has_not_seen_yet(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("far", "a", replicas=10)
    await farm.come_up(begin(connections=4 * 10))
    yard.pool("lab", "b", replicas=3)
    yard.silent.add("far")
    successor = begin(connections=4 * 10)
    for _ in range(2):
        await successor.reconcile_all()
        while not yard.all(resources.REPLICA_SETS, "lab"):
            await asyncio.sleep(0)
        yard.work()
    assert yard.replicas() == [0]


async def test_workers_of_a_pool_that_became_nonsense_count(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "bad", replicas=6)
    controller = begin(connections=4 * 10)
    await farm.come_up(controller)
    yard.pool("lab", "bad", slots="many")
    good = yard.pool("lab", "good", replicas=10)
    await farm.turn(controller)
    await farm.turn(controller)
    assert conditions(good)["Stalled"] == "ConnectionLimit"
