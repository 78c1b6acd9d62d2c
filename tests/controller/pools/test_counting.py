"""Workers that leave, that are not seen yet, or that another pool has, are counted all the same."""

import asyncio

from tests.controller.pools.conftest import Begin, Farm
from tests.controller.pools.yard import Yard, conditions
from workron.store.api import Store
from workron_controller.kube import errors, resources
from workron_controller.workerpools.autoscaler import IDLE_SECONDS


async def test_pools_share_the_connections_of_the_database(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pools = [yard.pool("lab", name, replicas=9) for name in ("a", "b")]
    keeper = begin(connections=4 * 10)
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert yard.replicas() == [5, 5]
    await farm.come_up(keeper)
    assert conditions(pools[0]) == {"Ready": "Ready", "Stalled": "ConnectionBudget"}
    assert "9 workers are wanted, and there may be 5" in str(pools[0]["status"])


async def test_pool_gets_no_worker_before_another_one_has_given_way(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "a", replicas=10)
    keeper = begin(connections=4 * 10)
    await farm.come_up(keeper)
    yard.pool("lab", "b", replicas=3)
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert sorted(yard.replicas()) == [0, 7]
    await farm.depart(farm.ending()[0])
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert sorted(yard.replicas()) == [1, 7]
    await farm.depart_all()
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert sorted(yard.replicas()) == [3, 7]


async def test_workers_of_a_pool_that_was_deleted_have_their_connections_until_they_end(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "a", replicas=6)
    keeper = begin(connections=4 * 10)
    await farm.come_up(keeper)
    del yard.objects[resources.WORKERPOOLS, "lab", "a"]
    yard.pool("lab", "b", replicas=10)
    for _ in range(3):
        await farm.turn(keeper)
    assert yard.replicas() == [4]
    for session in farm.sessions.values():
        await farm.store.deregister(session.key)
    await farm.turn(keeper)
    assert yard.replicas() == [10]


async def test_jobs_of_workers_that_leave_ask_for_no_others(
    begin: Begin, yard: Yard, farm: Farm, store: Store
) -> None:
    yard.pool("lab", "gpu", slots=1)
    keeper = begin()
    await farm.submit(2)
    await farm.come_up(keeper)
    for pod in yard.pods():
        await farm.take(pod)
    leaving, _ = await store.list_workers()
    await store.drain(leaving.worker)
    await farm.turn(keeper, IDLE_SECONDS)
    await farm.turn(keeper)
    assert yard.replicas() == [1]
    [stays] = [pod for pod in yard.pods() if pod not in farm.ending()]
    assert stays["metadata"]["uid"] != leaving.name
    assert stays["status"] != {}


async def test_worker_that_was_chosen_in_vain_keeps_no_job_waiting(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "gpu", replicas=1, slots=2)
    keeper = begin()
    await farm.submit()
    await farm.come_up(keeper)
    [chosen] = yard.pods()
    await farm.take(chosen)
    yard.pool("lab", "gpu", replicas=0, slots=2)
    yard.fail("patch", resources.REPLICA_SETS, errors.TransientError("503 later"))
    await farm.turn(keeper)
    yard.pool("lab", "gpu", replicas=1, slots=2)
    await farm.submit()
    await farm.come_up(keeper)
    [other] = [pod for pod in yard.pods() if pod not in farm.ending()]
    assert other != chosen
    assert len(await farm.take(other)) == 1


async def test_new_leader_counts_workers_that_it_has_not_seen_yet(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("far", "a", replicas=10)
    await farm.come_up(begin(connections=4 * 10))
    yard.pool("lab", "b", replicas=3)
    yard.silent.add("far")
    successor = begin(connections=4 * 10)
    for _ in range(2):
        await successor.look()
        while not yard.all(resources.REPLICA_SETS, "lab"):
            await asyncio.sleep(0)
        yard.work()
    assert yard.replicas() == [0]


async def test_workers_of_a_pool_that_became_nonsense_count(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "bad", replicas=6)
    keeper = begin(connections=4 * 10)
    await farm.come_up(keeper)
    yard.pool("lab", "bad", slots="many")
    good = yard.pool("lab", "good", replicas=10)
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert conditions(good)["Stalled"] == "ConnectionBudget"
