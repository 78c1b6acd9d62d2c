"""Pools that are gone: what let their workers in is taken back, and from none that may be there."""

import asyncio
from unittest import mock

import pytest
from structlog.testing import capture_logs

from tests.controller.workerpools.conftest import Begin, Farm
from tests.controller.workerpools.fake_cluster import FakeCluster
from workron.core import errors
from workron.store.api import Store
from workron.store.types import PoolGrant, PoolLogin
from workron_controller.kube import resources
from workron_controller.kube.errors import ForbiddenError
from workron_controller.workerpools.controller import WorkerPoolController

_NAME = "lab", "gpu"


async def _minute(farm: Farm, controller: WorkerPoolController) -> None:
    await farm.turn(controller, 60)
    await farm.turn(controller)


async def _had(begin: Begin, yard: FakeCluster, farm: Farm) -> WorkerPoolController:
    """Have a pool with a worker, and then neither."""
    yard.pool(*_NAME, minReplicas=1)
    controller = begin()
    await farm.come_up(controller)
    del yard.objects[resources.WORKERPOOLS, *_NAME]
    yard.work()
    for session in farm.sessions.values():
        await farm.store.deregister(session.key)
    return controller


async def test_pool_that_is_gone_lets_nobody_in_and_its_jobs_wait(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store
) -> None:
    controller = await _had(begin, yard, farm)
    await farm.submit()
    await _minute(farm, controller)
    assert await store.granted_pools() == set()
    hint = controller.blocking_reason(*_NAME)
    assert hint is not None
    assert hint.reason == "PoolNotFound"
    yard.pool(*_NAME)
    await farm.come_up(controller)
    [pod] = yard.pods()
    assert len(await farm.take(pod)) == 1


async def test_pool_with_a_worker_is_let_be_until_that_has_ended(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store
) -> None:
    yard.pool(*_NAME, minReplicas=1)
    controller = begin()
    await farm.come_up(controller)
    del yard.objects[resources.WORKERPOOLS, *_NAME]
    await _minute(farm, controller)
    assert await store.granted_pools() == {_NAME}
    [session] = farm.sessions.values()
    await store.deregister(session.key)
    await _minute(farm, controller)
    assert await store.granted_pools() == set()


async def test_pool_that_is_being_deleted_is_there_yet(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store
) -> None:
    pool = yard.pool(*_NAME, minReplicas=1)
    controller = begin()
    await farm.turn(controller)
    pool["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    yard.asked.clear()
    await _minute(farm, controller)
    assert await store.granted_pools() == {_NAME}
    assert "get" not in {
        verb for verb, place in yard.asked if place.resource == resources.WORKERPOOLS
    }


@pytest.mark.parametrize("namespaces", [["other"], ["lab", "other"]], ids=["unwatched", "closed"])
async def test_pool_that_cannot_be_seen_from_here_is_let_be(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store, namespaces: list[str]
) -> None:
    await _had(begin, yard, farm)
    yard.fail("list", resources.WORKERPOOLS, ForbiddenError("403"), times=99, namespace="lab")
    await _minute(farm, begin(namespaces=namespaces))
    assert await store.granted_pools() == {_NAME}


@pytest.mark.parametrize("error", [None, ForbiddenError("403")], ids=["there", "refused"])
async def test_pool_that_is_found_by_its_name_or_cannot_be_asked_for_is_let_be(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store, error: Exception | None
) -> None:
    controller = await _had(begin, yard, farm)
    found = mock.AsyncMock(return_value={}, side_effect=error)
    with mock.patch.object(yard, "get", found):
        await _minute(farm, controller)
    assert found.await_count == 1
    assert await store.granted_pools() == {_NAME}


async def test_pool_that_cannot_be_asked_for_keeps_no_other(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await _had(begin, yard, farm)
    known = mock.AsyncMock(return_value={_NAME, ("lab", "a")})
    monkeypatch.setattr(store, "granted_pools", known)
    yard.fail("get", resources.WORKERPOOLS, ForbiddenError("403"))
    with mock.patch.object(store, "revoke_pool", mock.AsyncMock()) as dismiss:
        await _minute(farm, controller)
    dismiss.assert_awaited_once_with(*_NAME)


@pytest.mark.parametrize("is_slow", [False, True], ids=["at once", "in the middle of it"])
async def test_pool_that_is_made_meanwhile_is_let_in_again(
    begin: Begin,
    yard: FakeCluster,
    farm: Farm,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_slow: bool,
) -> None:
    controller = await _had(begin, yard, farm)
    begun, go_on, admitted, dismissed = [asyncio.Event() for _ in range(4)]
    admit, dismiss = store.grant_pool, store.revoke_pool

    async def late(namespace: str, pool: str) -> bool:
        begun.set()
        await go_on.wait()
        is_dismissed = await dismiss(namespace, pool)
        asyncio.get_running_loop().call_soon(dismissed.set)
        return is_dismissed

    async def slow(admission: PoolGrant) -> PoolLogin:
        made = await admit(admission)
        admitted.set()
        if is_slow:
            await dismissed.wait()
        return made

    monkeypatch.setattr(store, "revoke_pool", late)
    monkeypatch.setattr(store, "grant_pool", slow)
    farm.time.turn(60)
    await controller.reconcile_all()
    await begun.wait()
    yard.pool(*_NAME, minReplicas=1)
    await controller.reconcile_all()
    await admitted.wait()
    while not (is_slow or yard.all(resources.REPLICA_SETS)):
        await asyncio.sleep(0)
    go_on.set()
    await controller.wait_idle()
    await farm.come_up(controller)
    assert len(await store.list_workers()) == 1


async def test_role_that_cannot_be_dropped_is_told_of_and_stops_no_other(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await _had(begin, yard, farm)
    known = mock.AsyncMock(return_value={_NAME, ("lab", "other")})
    left = errors.PermissionDeniedError("let a superuser run `DROP ROLE x;`")
    dismiss = mock.AsyncMock(side_effect=[left, True])
    monkeypatch.setattr(store, "granted_pools", known)
    monkeypatch.setattr(store, "revoke_pool", dismiss)
    with capture_logs() as logs:
        await _minute(farm, controller)
    assert [call.args for call in dismiss.await_args_list] == [_NAME, ("lab", "other")]
    assert "DROP ROLE x" in str([line for line in logs if line["log_level"] == "warning"])
