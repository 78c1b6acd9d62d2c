"""Pools that cannot have their workers: each is told why, and none keeps another from its own."""

from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest

from tests.controller.pools import yard as yards
from tests.controller.pools.conftest import Begin, Farm
from tests.controller.pools.yard import Yard, conditions
from workron.core import errors
from workron.core.model.workerpool import WorkerPool
from workron.store.api import Store
from workron_controller.kube import resources
from workron_controller.kube.errors import ForbiddenError, InvalidError
from workron_controller.workerpools.autoscaler import IDLE_SECONDS

_COMMAND = (
    "kubectl create rolebinding workron-pools --clusterrole=workron-pools"
    " --serviceaccount=workron:workron-controller --namespace lab"
)


async def test_image_that_cannot_be_pulled(begin: Begin, yard: Yard, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", image="nowhere:1")
    keeper = begin()
    await farm.submit()
    await farm.turn(keeper)
    [pod] = yard.pods()
    yards.waits(pod, "ImagePullBackOff", 'no such image "nowhere:1"')
    await farm.turn(keeper)
    assert conditions(pool) == {"not Ready": "ImagePullFailed", "Stalled": "ImagePullFailed"}
    hint = keeper.hint("lab", "gpu")
    assert hint is not None
    assert (hint.reason, "nowhere:1" in hint.message) == ("ImagePullFailed", True)
    yard.pool("lab", "gpu", image="there:1")
    await farm.come_up(keeper)
    await farm.turn(keeper)
    assert conditions(pool) == {"Ready": "Ready"}
    assert keeper.hint("lab", "gpu") is None


async def test_bad_image_of_a_new_revision_costs_no_worker_of_the_old_one(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=2)
    keeper = begin()
    await farm.come_up(keeper)
    yard.pool("lab", "gpu", minReplicas=2, image="nowhere:1")
    await farm.turn(keeper)
    [new] = [pod for pod in yard.pods() if not pod["status"]]
    yards.waits(new, "ErrImagePull")
    for _ in range(5):
        await farm.turn(keeper)
    assert farm.ending() == []
    assert conditions(pool) == {"Ready": "Ready", "Stalled": "ImagePullFailed"}


async def test_quota_that_is_full(begin: Begin, yard: Yard, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", replicas=3)
    yard.quota = 1
    keeper = begin()
    await farm.come_up(keeper)
    assert conditions(pool) == {"not Ready": "QuotaExceeded", "Stalled": "QuotaExceeded"}
    assert len(yard.pods()) == 1
    yard.quota = 3
    await farm.turn(keeper)
    await farm.come_up(keeper)
    assert conditions(pool) == {"Ready": "Ready"}


async def test_namespace_that_is_not_enabled_is_told_with_the_one_command(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu")
    yard.closed.add("lab")
    keeper = begin()
    await farm.submit()
    await farm.turn(keeper)
    told = {"not Ready": "NamespaceNotEnabled", "Stalled": "NamespaceNotEnabled"}
    assert conditions(pool) == told
    hint = keeper.hint("lab", "gpu")
    assert hint is not None
    assert hint.message.endswith(_COMMAND)
    yard.closed.clear()
    await farm.turn(keeper, IDLE_SECONDS)
    await farm.come_up(keeper)
    assert conditions(pool) == {"Ready": "Ready"}
    assert keeper.hint("lab", "gpu") is None


async def test_set_that_a_deleted_pool_left_behind_is_named(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    keeper = begin()
    await farm.turn(keeper)
    [left] = yard.all(resources.REPLICA_SETS)
    owners = left["metadata"].pop("ownerReferences")
    await farm.turn(keeper)
    await farm.turn(keeper)
    assert conditions(pool)["Stalled"] == "NameTaken"
    name = left["metadata"]["name"]
    assert f"`kubectl delete rs/{name} --namespace lab`" in str(pool["status"])
    left["metadata"]["ownerReferences"] = [{**owners[0], "uid": "of-its-namesake"}]
    farm.time.turn(20)
    await keeper.look()
    await keeper.settled()
    assert "Stalled" not in conditions(pool)


async def test_pool_that_cannot_even_be_read_stops_no_other(
    begin: Begin, yard: Yard, farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = yard.pool("lab", "bad", slots=7)
    good = yard.pool("lab", "good", minReplicas=1)
    parse = WorkerPool.parse

    def stumble(raw: Mapping[str, Any]) -> WorkerPool:
        if raw["metadata"]["name"] == "bad":
            raise RecursionError("too deep")
        return parse(raw)

    monkeypatch.setattr(WorkerPool, "parse", stumble)
    await farm.come_up(begin())
    assert conditions(good) == {"Ready": "Ready"}
    assert conditions(bad)["Stalled"] == "InvalidSpec"


async def test_namespace_that_is_being_deleted(begin: Begin, yard: Yard, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    refusal = ForbiddenError("403 unable to create: because it is being terminated")
    yard.fail("create", resources.REPLICA_SETS, refusal, times=99)
    await farm.turn(begin())
    assert conditions(pool)["Stalled"] == "NamespaceTerminating"
    assert "rolebinding" not in str(pool["status"])


async def test_pool_with_nonsense_in_it_is_told_what_would_be_right(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    bad = yard.pool("lab", "bad", slots=0, imagee="x")
    good = yard.pool("lab", "good", minReplicas=1)
    keeper = begin()
    await farm.come_up(keeper)
    assert conditions(bad) == {"not Ready": "InvalidSpec", "Stalled": "InvalidSpec"}
    assert "did you mean image?" in str(bad["status"])
    assert conditions(good) == {"Ready": "Ready"}


async def test_pool_that_became_nonsense_keeps_its_workers(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=2)
    keeper = begin()
    await farm.come_up(keeper)
    yard.pool("lab", "gpu", slots="many")
    await farm.turn(keeper, IDLE_SECONDS)
    await farm.turn(keeper, IDLE_SECONDS)
    assert len(yard.pods()) == 2
    assert farm.ending() == []


async def test_template_that_the_server_refuses_is_told_of(
    begin: Begin, yard: Yard, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    refusal = InvalidError("create: 422 volumeMounts[4].mountPath: must be unique")
    yard.fail("create", resources.REPLICA_SETS, refusal, times=99)
    await farm.turn(begin())
    assert conditions(pool)["Stalled"] == "InvalidSpec"
    assert "must be unique" in str(pool["status"])


async def test_database_that_makes_no_roles_is_told_with_what_would_let_it(
    begin: Begin, yard: Yard, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    denied = errors.PermissionDeniedError("let a superuser run `ALTER ROLE me CREATEROLE`")
    monkeypatch.setattr(store, "admit", mock.AsyncMock(side_effect=denied))
    await farm.turn(begin())
    assert conditions(pool) == {"not Ready": "DatabaseRights", "Stalled": "DatabaseRights"}
    assert "ALTER ROLE me CREATEROLE" in str(pool["status"])
    assert yard.pods() == []
