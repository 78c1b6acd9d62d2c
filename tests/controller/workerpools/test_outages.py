"""The server, the database, a namespace or the leader is away: nothing is lost, and it is told."""

import asyncio
from unittest import mock

import pytest
from structlog.testing import capture_logs

from tests.controller.workerpools import fake_cluster
from tests.controller.workerpools.conftest import Begin, Farm
from tests.controller.workerpools.fake_cluster import FakeCluster, conditions
from workron.core import errors
from workron.store.api import Store
from workron_controller.kube import resources
from workron_controller.kube.errors import BusyError, ConflictError, UnreachableError
from workron_controller.workerpools.autoscaler import SCALE_DOWN_SECONDS
from workron_controller.workerpools.controller import WorkerPoolController

_COMMAND = (
    "kubectl create rolebinding workron-pools --clusterrole=workron-pools"
    " --serviceaccount=workron:workron-controller --namespace lab"
)


async def test_server_that_stays_away_is_logged_once(begin: Begin, yard: FakeCluster) -> None:
    yard.fail("list", resources.WORKERPOOLS, UnreachableError("no answer"), times=4)
    rest = mock.patch("asyncio.sleep", side_effect=[None] * 8 + [asyncio.CancelledError])
    with capture_logs() as logs, rest, pytest.raises(asyncio.CancelledError):
        await begin().run()
    assert [line["event"] for line in logs] == ["pools not listed"]


async def test_pool_whose_namespace_gives_no_answer_delays_no_other(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("silent", "gpu", minReplicas=1)
    good = yard.pool("lab", "gpu", minReplicas=1)
    yard.silent.add("silent")
    controller = begin()
    for _ in range(3):
        await controller.reconcile_all()
        # Others are done with when the loop has nothing else to do.
        while "Ready" not in str(good.get("status")):
            await asyncio.sleep(0)
        yard.work()
        await farm.start_all()
    waiting = [place for _, place in yard.asked if place.namespace == "silent"]
    assert len(waiting) == 1


async def test_pool_whose_namespace_gives_no_answer_is_let_go_in_time(
    begin: Begin, yard: FakeCluster
) -> None:
    yard.pool("silent", "gpu", minReplicas=1)
    yard.silent.add("silent")
    controller = begin(task_timeout=0.01)
    for _ in range(2):
        await controller.reconcile_all()
        await controller.wait_idle()
    assert [place.namespace for _, place in yard.asked].count("silent") == 2


async def test_surprise_in_one_pool_is_logged_and_stops_no_other(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("bad", "gpu", minReplicas=1)
    good = yard.pool("lab", "gpu", minReplicas=1)
    yard.fail("list", resources.PODS, KeyError("surprise"), times=99, namespace="bad")
    controller = begin()
    with capture_logs() as logs:
        await farm.come_up(controller)
    assert conditions(good) == {"Ready": "Ready"}
    assert "pool not reconciled" in {line["event"] for line in logs}


async def test_server_that_is_away_is_waited_for(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=1)
    yard.fail("list", resources.WORKERPOOLS, UnreachableError("no answer"))
    controller = begin()
    rest = mock.patch("asyncio.sleep", side_effect=[None, asyncio.CancelledError])
    with rest, pytest.raises(asyncio.CancelledError):
        await controller.run()
    await farm.come_up(controller)
    assert len(yard.pods()) == 1


async def test_server_that_goes_away_in_the_middle_is_told_of_when_it_is_back(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    yard.fail("list", resources.PODS, BusyError("429", after=1))
    controller = begin()
    await farm.turn(controller)
    assert conditions(pool) == {"not Ready": "ApiUnavailable", "Reconciling": "ApiUnavailable"}
    await farm.come_up(controller)
    assert conditions(pool) == {"Ready": "Ready"}


async def test_database_that_is_away_is_told_of_and_changes_nothing(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=2)
    controller = begin()
    await farm.come_up(controller)
    await farm.submit(3)
    await farm.take(yard.pods()[0])
    await farm.turn(controller, 10)
    await farm.turn(controller)
    before = dict(pool["status"])
    away = mock.AsyncMock(side_effect=errors.StoreUnreachableError("no answer"))
    with monkeypatch.context() as patch:
        patch.setattr(store, "list_workers", away)
        for pod in yard.pods():
            fake_cluster.unready(pod)
        await farm.turn(controller, SCALE_DOWN_SECONDS)
    assert conditions(pool)["not Ready"] == "DatabaseUnavailable"
    numbers = ("desiredReplicas", "readyReplicas", "busy", "queued")
    assert [pool["status"][name] for name in numbers] == [2, 2, 1, 2]
    assert pool["status"].keys() == before.keys()
    yard.pool("lab", "gpu", minReplicas=2)
    for pod in yard.pods():
        fake_cluster.place_on(pod)
    await farm.turn(controller)
    assert conditions(pool) == {"Ready": "Ready"}
    assert farm.ending() == []


async def test_new_leader_whose_database_is_away_says_so(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=2)
    away = mock.AsyncMock(side_effect=errors.StoreUnreachableError("no answer"))
    monkeypatch.setattr(store, "list_workers", away)
    await farm.turn(begin())
    assert "DatabaseUnavailable" in conditions(pool).values()


async def test_status_that_cannot_be_written_is_written_the_next_time(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    yard.fail("status", resources.WORKERPOOLS, ConflictError("409"))
    controller = begin()
    await farm.turn(controller)
    await farm.turn(controller)
    assert "Starting" in conditions(pool).values()


async def _begin_to_drain(
    yard: FakeCluster, farm: Farm, controller: WorkerPoolController
) -> fake_cluster.Raw:
    """Have three workers, and the API server fail when one is to go; give the one that is busy."""
    yard.pool("lab", "gpu", replicas=3, slots=1)
    await farm.submit()
    await farm.come_up(controller)
    _, busy, _ = yard.pods()
    await farm.take(busy)
    yard.pool("lab", "gpu", replicas=2, slots=1)
    yard.fail("patch", resources.REPLICA_SETS, UnreachableError("no answer"))
    await farm.turn(controller)
    return busy


async def test_leader_that_comes_in_the_middle_of_a_drain_ends_it(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store
) -> None:
    busy = await _begin_to_drain(yard, farm, begin())
    assert [row.is_draining for row in await store.list_workers()].count(True) == 1
    assert yard.replicas() == [3]
    successor = begin()
    for _ in range(3):
        await farm.turn(successor)
    assert yard.replicas() == [2]
    [gone] = farm.ending()
    assert gone is not busy
    assert [row.is_draining for row in await store.list_workers()].count(True) == 1


async def test_two_leaders_at_once_end_no_more_than_one_does(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    late = begin()
    busy = await _begin_to_drain(yard, farm, late)
    successor = begin()
    for _ in range(3):
        await farm.turn(successor)
        await farm.turn(late)
    assert yard.replicas() == [2]
    assert len(farm.ending()) == 1
    assert farm.ending() != [busy]
