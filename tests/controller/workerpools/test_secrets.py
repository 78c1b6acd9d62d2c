"""What a pool's workers and its database know each other by: made, kept, and made good again."""

from unittest import mock
from urllib import parse

import pytest

from tests.controller.workerpools import fake_cluster
from tests.controller.workerpools.conftest import Begin, Farm
from tests.controller.workerpools.fake_cluster import FakeCluster, conditions
from workron.store.api import Store
from workron.store.types import PoolGrant, PoolLogin
from workron_controller.kube import resources


async def test_secret_that_is_lost_is_made_again(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=1)
    controller = begin()
    await farm.turn(controller)
    key = resources.SECRETS, "lab", "workron-pool-gpu"
    lost = yard.objects.pop(key)
    [pod] = yard.pods()
    state = {"waiting": {"reason": "CreateContainerConfigError"}}
    pod["status"] = {"containerStatuses": [{"name": "agent", "state": state}]}
    await farm.turn(controller)
    await farm.turn(controller)
    assert yard.objects[key]["data"]["token"] != lost["data"]["token"]
    await farm.start(pod)


async def test_token_is_kept_and_made_good_again_at_times(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=1)
    controller = begin()
    await farm.come_up(controller)
    [secret] = yard.all(resources.SECRETS)
    before = dict(secret["data"])
    for _ in range(20):
        await farm.turn(controller, 30 * 86_400)
    assert secret["data"] == before
    assert sum("secrets" in write for write in yard.writes()) == 1
    await farm.start(yard.pods()[0])


async def test_workers_move_with_the_database(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    yard.pool("lab", "gpu", replicas=1)
    await farm.come_up(begin())
    [old] = yard.pods()
    monkeypatch.setattr(store, "url", "postgresql://new/jobs")
    for session in farm.sessions.values():
        await store.deregister(session.key)
    fake_cluster.unready(old)
    controller = begin()
    await farm.come_up(controller)
    assert farm.ending() == [old]
    assert len(yard.pods()) == 2


def _asked(admit: mock.AsyncMock) -> PoolGrant:
    """Give what was asked for last."""
    admission: PoolGrant = admit.await_args_list[-1].args[0]
    return admission


async def test_password_of_the_operator_never_becomes_that_of_a_pool(
    begin: Begin,
    yard: FakeCluster,
    farm: Farm,
    store: Store,
    admit: mock.AsyncMock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(store, "url", "postgresql://me:mine@db/jobs")
    yard.pool("lab", "gpu", minReplicas=1)
    await farm.turn(begin(uses_shared_role=True))
    assert _asked(admit).password is None
    await farm.turn(begin())
    assert _asked(admit).password not in {None, "mine"}


async def test_workers_that_are_to_end_can_connect_until_they_have(
    begin: Begin, yard: FakeCluster, farm: Farm, admit: mock.AsyncMock
) -> None:
    yard.pool("lab", "gpu", replicas=9)
    controller = begin()
    await farm.come_up(controller)
    yard.pool("lab", "gpu", replicas=1)
    await farm.turn(controller)
    assert _asked(admit).connections >= 4 * 9


async def test_password_of_a_pool_is_kept(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = "p@ss"
    admitted = PoolLogin(f"postgresql://pool:{parse.quote(word)}@db/jobs", 97)
    admit = mock.AsyncMock(return_value=admitted)
    monkeypatch.setattr(store, "grant_pool", admit)
    yard.pool("lab", "gpu", minReplicas=1)
    for _ in range(2):
        await farm.turn(begin())
    assert _asked(admit).password == word
    assert _asked(admit).connections == 4 * (2 * 10 + 1)


async def test_secret_that_commands_lack_is_not_ours_to_make(
    begin: Begin, yard: FakeCluster, farm: Farm, admit: mock.AsyncMock
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    controller = begin()
    await farm.turn(controller)
    fake_cluster.waits(yard.pods()[0], "CreateContainerConfigError", 'secret "theirs" not found')
    await farm.turn(controller)
    await farm.turn(controller)
    assert admit.await_count == 1
    assert conditions(pool)["Stalled"] == "PodsNotReady"


async def test_secret_that_somebody_spoilt_is_made_anew(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=1)
    await farm.turn(begin())
    [secret] = yard.all(resources.SECRETS)
    for spoilt in ({}, {"store": "?", "token": "?"}, {"store": "AAAA", "token": "/w=="}):
        secret["data"] = dict(spoilt)
        await farm.turn(begin())
        assert secret["data"].keys() == {"store", "token"}
        assert secret["data"] != spoilt
