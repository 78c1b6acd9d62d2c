"""Credentials of pools: granted, kept, written again and revoked."""

import asyncio
from unittest import mock
from urllib import parse

import pytest
from structlog.testing import capture_logs

from tests.controller.workerpools import fake_cluster
from tests.controller.workerpools.conftest import PoolHarness
from tests.controller.workerpools.fake_cluster import FakeCluster, conditions
from workron.core import errors
from workron.store.api import Store
from workron.store.types import PoolGrant, PoolLogin
from workron_controller.kube import resources
from workron_controller.kube.errors import ForbiddenError
from workron_controller.workerpools.controller import WorkerPoolController


async def test_secret_is_created_again_when_it_is_missing(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu", minReplicas=1)
    controller = harness.new_controller()
    await harness.round(controller)
    key = resources.SECRETS, "lab", "workron-pool-gpu"
    deleted = cluster.objects.pop(key)
    [pod] = cluster.pods()
    state = {"waiting": {"reason": "CreateContainerConfigError"}}
    pod["status"] = {"containerStatuses": [{"name": "agent", "state": state}]}
    await harness.round(controller)
    await harness.round(controller)
    assert cluster.objects[key]["data"]["token"] != deleted["data"]["token"]
    await harness.start_pod(pod)


async def test_token_stays_the_same_when_access_is_granted_again(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu", minReplicas=1)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    [secret] = cluster.objects_of(resources.SECRETS)
    before = dict(secret["data"])
    for _ in range(20):
        await harness.round(controller, 30 * 86_400)
    assert secret["data"] == before
    assert sum("secrets" in write for write in cluster.writes()) == 1
    await harness.start_pod(cluster.pods()[0])


async def test_workers_are_replaced_when_the_database_changes(
    harness: PoolHarness, cluster: FakeCluster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.apply_pool("lab", "gpu", replicas=1)
    await harness.start_workers(harness.new_controller())
    [old] = cluster.pods()
    monkeypatch.setattr(store, "url", "postgresql://new/jobs")
    await harness.deregister_all()
    fake_cluster.set_unready(old)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    assert harness.terminating() == [old]
    assert len(cluster.pods()) == 2


def _last(grants: mock.AsyncMock) -> PoolGrant:
    grant: PoolGrant = grants.await_args_list[-1].args[0]
    return grant


async def test_password_of_the_controller_never_becomes_that_of_a_pool(
    harness: PoolHarness,
    cluster: FakeCluster,
    store: Store,
    grants: mock.AsyncMock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "url", "postgresql://me:mine@db/jobs")
    cluster.apply_pool("lab", "gpu", minReplicas=1)
    await harness.round(harness.new_controller(uses_shared_role=True))
    assert _last(grants).password is None
    await harness.round(harness.new_controller())
    assert _last(grants).password not in {None, "mine"}


async def test_terminating_workers_keep_their_connections_when_a_pool_shrinks(
    harness: PoolHarness, cluster: FakeCluster, grants: mock.AsyncMock
) -> None:
    cluster.apply_pool("lab", "gpu", replicas=9)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    cluster.apply_pool("lab", "gpu", replicas=1)
    await harness.round(controller)
    assert _last(grants).connections >= 4 * 9


async def test_password_of_a_pool_is_kept_when_a_controller_starts(
    harness: PoolHarness, cluster: FakeCluster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = "p@ss"
    login = PoolLogin(f"postgresql://pool:{parse.quote(stored)}@db/jobs", 97)
    grants = mock.AsyncMock(return_value=login)
    monkeypatch.setattr(store, "grant_pool", grants)
    cluster.apply_pool("lab", "gpu", minReplicas=1)
    for _ in range(2):
        await harness.round(harness.new_controller())
    assert _last(grants).password == stored
    assert _last(grants).connections == 4 * (2 * 10 + 1)


async def test_access_is_not_granted_again_when_a_command_lacks_a_secret(
    harness: PoolHarness, cluster: FakeCluster, grants: mock.AsyncMock
) -> None:
    pool = cluster.apply_pool("lab", "gpu", minReplicas=1)
    controller = harness.new_controller()
    await harness.round(controller)
    fake_cluster.set_waiting(
        cluster.pods()[0], "CreateContainerConfigError", 'secret "database" not found'
    )
    await harness.round(controller)
    await harness.round(controller)
    assert grants.await_count == 1
    assert conditions(pool)["Stalled"] == "PodsNotReady"


async def test_secret_is_rewritten_when_it_is_malformed(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu", minReplicas=1)
    await harness.round(harness.new_controller())
    [secret] = cluster.objects_of(resources.SECRETS)
    for malformed in ({}, {"store": "?", "token": "?"}, {"store": "AAAA", "token": "/w=="}):
        secret["data"] = dict(malformed)
        await harness.round(harness.new_controller())
        assert secret["data"].keys() == {"store", "token"}
        assert secret["data"] != malformed


_NAME = "lab", "gpu"


async def _run_for_a_minute(harness: PoolHarness, controller: WorkerPoolController) -> None:
    await harness.round(controller, 60)
    await harness.round(controller)


async def _with_deleted_pool(harness: PoolHarness, cluster: FakeCluster) -> WorkerPoolController:
    """Return a controller after its only pool was deleted and its worker has ended."""
    cluster.apply_pool(*_NAME, minReplicas=1)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    del cluster.objects[resources.WORKERPOOLS, *_NAME]
    cluster.run_controllers()
    await harness.deregister_all()
    return controller


async def test_credentials_are_revoked_and_jobs_wait_when_the_pool_is_deleted(
    harness: PoolHarness, cluster: FakeCluster, store: Store
) -> None:
    controller = await _with_deleted_pool(harness, cluster)
    await harness.submit()
    await _run_for_a_minute(harness, controller)
    assert await store.granted_pools() == set()
    reason = controller.blocking_reason(*_NAME)
    assert reason is not None
    assert reason.reason == "PoolNotFound"
    cluster.apply_pool(*_NAME)
    await harness.start_workers(controller)
    [pod] = cluster.pods()
    assert len(await harness.claim(pod)) == 1


async def test_credentials_are_kept_until_the_last_worker_of_a_deleted_pool_has_ended(
    harness: PoolHarness, cluster: FakeCluster, store: Store
) -> None:
    cluster.apply_pool(*_NAME, minReplicas=1)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    del cluster.objects[resources.WORKERPOOLS, *_NAME]
    await _run_for_a_minute(harness, controller)
    assert await store.granted_pools() == {_NAME}
    [session] = harness.sessions.values()
    await store.deregister(session.key)
    await _run_for_a_minute(harness, controller)
    assert await store.granted_pools() == set()


async def test_credentials_are_kept_when_the_pool_is_still_terminating(
    harness: PoolHarness, cluster: FakeCluster, store: Store
) -> None:
    pool = cluster.apply_pool(*_NAME, minReplicas=1)
    controller = harness.new_controller()
    await harness.round(controller)
    pool["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    cluster.requests.clear()
    await _run_for_a_minute(harness, controller)
    assert await store.granted_pools() == {_NAME}
    assert "get" not in {
        verb for verb, path in cluster.requests if path.resource == resources.WORKERPOOLS
    }


@pytest.mark.parametrize(
    "namespaces", [["other"], ["lab", "other"]], ids=["unwatched", "forbidden"]
)
async def test_credentials_are_kept_when_the_namespace_is_not_listed(
    harness: PoolHarness, cluster: FakeCluster, store: Store, namespaces: list[str]
) -> None:
    await _with_deleted_pool(harness, cluster)
    cluster.fail("list", resources.WORKERPOOLS, ForbiddenError("403"), times=99, namespace="lab")
    await _run_for_a_minute(harness, harness.new_controller(namespaces=namespaces))
    assert await store.granted_pools() == {_NAME}


@pytest.mark.parametrize("error", [None, ForbiddenError("403")], ids=["it exists", "forbidden"])
async def test_credentials_are_kept_when_a_request_by_name_does_not_prove_the_deletion(
    harness: PoolHarness, cluster: FakeCluster, store: Store, error: Exception | None
) -> None:
    controller = await _with_deleted_pool(harness, cluster)
    found = mock.AsyncMock(return_value={}, side_effect=error)
    with mock.patch.object(cluster, "get", found):
        await _run_for_a_minute(harness, controller)
    assert found.await_count == 1
    assert await store.granted_pools() == {_NAME}


async def test_other_pools_are_revoked_when_one_cannot_be_read(
    harness: PoolHarness, cluster: FakeCluster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await _with_deleted_pool(harness, cluster)
    known = mock.AsyncMock(return_value={_NAME, ("lab", "a")})
    monkeypatch.setattr(store, "granted_pools", known)
    cluster.fail("get", resources.WORKERPOOLS, ForbiddenError("403"))
    with mock.patch.object(store, "revoke_pool", mock.AsyncMock()) as revoke:
        await _run_for_a_minute(harness, controller)
    revoke.assert_awaited_once_with(*_NAME)


@pytest.mark.parametrize(
    "is_slow", [False, True], ids=["grant ends first", "revocation ends first"]
)
async def test_pool_is_granted_again_when_it_is_created_during_the_revocation(
    harness: PoolHarness,
    cluster: FakeCluster,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_slow: bool,
) -> None:
    controller = await _with_deleted_pool(harness, cluster)
    started, may_continue, granted, revoked = [asyncio.Event() for _ in range(4)]
    grant_pool, revoke_pool = store.grant_pool, store.revoke_pool

    async def slow_revoke(namespace: str, pool: str) -> bool:
        started.set()
        await may_continue.wait()
        is_revoked = await revoke_pool(namespace, pool)
        asyncio.get_running_loop().call_soon(revoked.set)
        return is_revoked

    async def slow_grant(grant: PoolGrant) -> PoolLogin:
        login = await grant_pool(grant)
        granted.set()
        if is_slow:
            await revoked.wait()
        return login

    monkeypatch.setattr(store, "revoke_pool", slow_revoke)
    monkeypatch.setattr(store, "grant_pool", slow_grant)
    harness.time.advance(60)
    await controller.reconcile_all()
    await started.wait()
    cluster.apply_pool(*_NAME, minReplicas=1)
    await controller.reconcile_all()
    await granted.wait()
    while not (is_slow or cluster.objects_of(resources.REPLICA_SETS)):
        await asyncio.sleep(0)
    may_continue.set()
    await controller.wait_idle()
    await harness.start_workers(controller)
    assert len(await store.list_workers()) == 1


async def test_other_pools_are_revoked_when_a_role_cannot_be_dropped(
    harness: PoolHarness, cluster: FakeCluster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = await _with_deleted_pool(harness, cluster)
    known = mock.AsyncMock(return_value={_NAME, ("lab", "other")})
    denied = errors.PermissionDeniedError("let a superuser run `DROP ROLE x;`")
    revoke = mock.AsyncMock(side_effect=[denied, True])
    monkeypatch.setattr(store, "granted_pools", known)
    monkeypatch.setattr(store, "revoke_pool", revoke)
    with capture_logs() as logs:
        await _run_for_a_minute(harness, controller)
    assert [call.args for call in revoke.await_args_list] == [_NAME, ("lab", "other")]
    assert "DROP ROLE x" in str([line for line in logs if line["log_level"] == "warning"])
