"""The controller of all pools during outages and changes of the leader."""

import asyncio
from unittest import mock

import pytest
from structlog.testing import capture_logs

from tests.controller.workerpools import fake_cluster
from tests.controller.workerpools.conftest import PoolHarness
from tests.controller.workerpools.fake_cluster import FakeCluster, conditions
from workron.core import errors
from workron.store.api import Store
from workron_controller.kube import resources
from workron_controller.kube.errors import BusyError, ConflictError, UnreachableError
from workron_controller.workerpools.autoscaler import SCALE_DOWN_SECONDS
from workron_controller.workerpools.controller import WorkerPoolController


async def test_warning_is_logged_once_when_the_api_server_stays_unavailable(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.fail("list", resources.WORKERPOOLS, UnreachableError("no answer"), times=4)
    sleep = mock.AsyncMock(side_effect=[None] * 8 + [asyncio.CancelledError])
    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        await harness.new_controller(sleep=sleep).run()
    assert [line["event"] for line in logs] == ["pools not listed"]


async def test_other_pools_are_reconciled_when_one_request_hangs(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("hanging", "gpu", minReplicas=1)
    good = cluster.apply_pool("lab", "gpu", minReplicas=1)
    cluster.unanswered.add("hanging")
    controller = harness.new_controller()
    for _ in range(3):
        await controller.reconcile_all()
        while "Ready" not in str(good.get("status")):
            await asyncio.sleep(0)
        cluster.run_controllers()
        await harness.start_pods()
    waiting = [path for _, path in cluster.requests if path.namespace == "hanging"]
    assert len(waiting) == 1


async def test_reconciliation_is_cancelled_when_it_takes_too_long(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("hanging", "gpu", minReplicas=1)
    cluster.unanswered.add("hanging")
    controller = harness.new_controller(task_timeout=0.01)
    for _ in range(2):
        await controller.reconcile_all()
        await controller.wait_idle()
    assert [path.namespace for _, path in cluster.requests].count("hanging") == 2


async def test_other_pools_are_reconciled_when_one_raises_an_unexpected_error(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("bad", "gpu", minReplicas=1)
    good = cluster.apply_pool("lab", "gpu", minReplicas=1)
    cluster.fail("list", resources.PODS, KeyError("unexpected"), times=99, namespace="bad")
    controller = harness.new_controller()
    with capture_logs() as logs:
        await harness.start_workers(controller)
    assert conditions(good) == {"Ready": "Ready"}
    assert "pool not reconciled" in {line["event"] for line in logs}


async def test_controller_continues_when_the_api_server_is_back(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu", minReplicas=1)
    cluster.fail("list", resources.WORKERPOOLS, UnreachableError("no answer"))
    sleep = mock.AsyncMock(side_effect=[None, asyncio.CancelledError])
    controller = harness.new_controller(sleep=sleep)
    with pytest.raises(asyncio.CancelledError):
        await controller.run()
    await harness.start_workers(controller)
    assert len(cluster.pods()) == 1


async def test_status_reports_the_outage_when_a_list_of_pods_fails(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", minReplicas=1)
    cluster.fail("list", resources.PODS, BusyError("429", after=1))
    controller = harness.new_controller()
    await harness.round(controller)
    assert conditions(pool) == {"not Ready": "ApiUnavailable", "Reconciling": "ApiUnavailable"}
    await harness.start_workers(controller)
    assert conditions(pool) == {"Ready": "Ready"}


async def test_status_reports_the_outage_and_pods_stay_when_the_database_is_unavailable(
    harness: PoolHarness, cluster: FakeCluster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = cluster.apply_pool("lab", "gpu", minReplicas=2)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    await harness.submit(3)
    await harness.claim(cluster.pods()[0])
    await harness.round(controller, 10)
    await harness.round(controller)
    before = dict(pool["status"])
    unavailable = mock.AsyncMock(side_effect=errors.StoreUnreachableError("no answer"))
    with monkeypatch.context() as patch:
        patch.setattr(store, "list_workers", unavailable)
        for pod in cluster.pods():
            fake_cluster.set_unready(pod)
        await harness.round(controller, SCALE_DOWN_SECONDS)
    assert conditions(pool)["not Ready"] == "DatabaseUnavailable"
    numbers = ("desiredReplicas", "readyReplicas", "busy", "queued")
    assert [pool["status"][name] for name in numbers] == [2, 2, 1, 2]
    assert pool["status"].keys() == before.keys()
    cluster.apply_pool("lab", "gpu", minReplicas=2)
    for pod in cluster.pods():
        fake_cluster.set_ready(pod)
    await harness.round(controller)
    assert conditions(pool) == {"Ready": "Ready"}
    assert harness.terminating() == []


async def test_new_leader_reports_the_outage_when_the_database_is_unavailable(
    harness: PoolHarness, cluster: FakeCluster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = cluster.apply_pool("lab", "gpu", minReplicas=2)
    unavailable = mock.AsyncMock(side_effect=errors.StoreUnreachableError("no answer"))
    for method in ("granted_pools", "list_workers", "pool_demand"):
        monkeypatch.setattr(store, method, unavailable)
    await harness.round(harness.new_controller())
    assert "DatabaseUnavailable" in conditions(pool).values()


async def test_status_is_written_in_the_next_round_when_a_write_conflicts(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", minReplicas=1)
    cluster.fail("status", resources.WORKERPOOLS, ConflictError("409"))
    controller = harness.new_controller()
    await harness.round(controller)
    await harness.round(controller)
    assert "Starting" in conditions(pool).values()


async def _interrupt_drain(
    cluster: FakeCluster, harness: PoolHarness, controller: WorkerPoolController
) -> fake_cluster.Raw:
    """Start three workers, fail to scale down to two, and return the pod of the busy one."""
    cluster.apply_pool("lab", "gpu", replicas=3, slots=1)
    await harness.submit()
    await harness.start_workers(controller)
    _, busy, _ = cluster.pods()
    await harness.claim(busy)
    cluster.apply_pool("lab", "gpu", replicas=2, slots=1)
    cluster.fail("patch", resources.REPLICA_SETS, UnreachableError("no answer"))
    await harness.round(controller)
    return busy


async def test_new_leader_completes_a_drain_when_the_old_one_stopped_halfway(
    harness: PoolHarness, cluster: FakeCluster, store: Store
) -> None:
    busy = await _interrupt_drain(cluster, harness, harness.new_controller())
    assert [row.is_draining for row in await store.list_workers()].count(True) == 1
    assert cluster.replica_counts() == [3]
    new_leader = harness.new_controller()
    for _ in range(3):
        await harness.round(new_leader)
    assert cluster.replica_counts() == [2]
    [terminated] = harness.terminating()
    assert terminated is not busy
    assert [row.is_draining for row in await store.list_workers()].count(True) == 1


async def test_only_one_worker_terminates_when_two_leaders_scale_down(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    old_leader = harness.new_controller()
    busy = await _interrupt_drain(cluster, harness, old_leader)
    new_leader = harness.new_controller()
    for _ in range(3):
        await harness.round(new_leader)
        await harness.round(old_leader)
    assert cluster.replica_counts() == [2]
    assert len(harness.terminating()) == 1
    assert harness.terminating() != [busy]
