"""Pools that cannot have their workers: each is told why, and none keeps another from its own."""

from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest

from tests.controller.workerpools import fake_cluster
from tests.controller.workerpools.conftest import Begin, Farm
from tests.controller.workerpools.fake_cluster import FakeCluster, conditions
from workron.core import errors
from workron.core.model.workerpool import WorkerPool
from workron.store.api import Store
from workron_controller.kube import resources
from workron_controller.kube.errors import ForbiddenError, InvalidError
from workron_controller.workerpools.autoscaler import SCALE_DOWN_SECONDS

_COMMAND = (
    "kubectl create rolebinding workron-pools --clusterrole=workron-pools"
    " --serviceaccount=workron:workron-controller --namespace lab"
)


async def test_image_that_cannot_be_pulled(begin: Begin, yard: FakeCluster, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", image="nowhere:1")
    controller = begin()
    await farm.submit()
    await farm.turn(controller)
    [pod] = yard.pods()
    fake_cluster.waits(pod, "ImagePullBackOff", 'no such image "nowhere:1"')
    await farm.turn(controller)
    assert conditions(pool) == {"not Ready": "ImagePullFailed", "Stalled": "ImagePullFailed"}
    hint = controller.blocking_reason("lab", "gpu")
    assert hint is not None
    assert (hint.reason, "nowhere:1" in hint.message) == ("ImagePullFailed", True)
    yard.pool("lab", "gpu", image="there:1")
    await farm.come_up(controller)
    await farm.turn(controller)
    assert conditions(pool) == {"Ready": "Ready"}
    assert controller.blocking_reason("lab", "gpu") is None


async def test_bad_image_of_a_new_revision_costs_no_worker_of_the_old_one(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=2)
    controller = begin()
    await farm.come_up(controller)
    yard.pool("lab", "gpu", minReplicas=2, image="nowhere:1")
    await farm.turn(controller)
    [new] = [pod for pod in yard.pods() if not pod["status"]]
    fake_cluster.waits(new, "ErrImagePull")
    for _ in range(5):
        await farm.turn(controller)
    assert farm.ending() == []
    assert conditions(pool) == {"Ready": "Ready", "Stalled": "ImagePullFailed"}


async def test_quota_that_is_full(begin: Begin, yard: FakeCluster, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", replicas=3)
    yard.quota = 1
    controller = begin()
    await farm.come_up(controller)
    assert conditions(pool) == {"not Ready": "QuotaExceeded", "Stalled": "QuotaExceeded"}
    assert len(yard.pods()) == 1
    yard.quota = 3
    await farm.turn(controller)
    await farm.come_up(controller)
    assert conditions(pool) == {"Ready": "Ready"}


async def test_namespace_that_is_not_enabled_is_told_with_the_one_command(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu")
    yard.closed.add("lab")
    controller = begin()
    await farm.submit()
    await farm.turn(controller)
    told = {"not Ready": "NamespaceNotEnabled", "Stalled": "NamespaceNotEnabled"}
    assert conditions(pool) == told
    hint = controller.blocking_reason("lab", "gpu")
    assert hint is not None
    assert hint.message.endswith(_COMMAND)
    yard.closed.clear()
    await farm.turn(controller, SCALE_DOWN_SECONDS)
    await farm.come_up(controller)
    assert conditions(pool) == {"Ready": "Ready"}
    assert controller.blocking_reason("lab", "gpu") is None


async def test_set_that_a_deleted_pool_left_behind_is_named(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    controller = begin()
    await farm.turn(controller)
    [left] = yard.all(resources.REPLICA_SETS)
    owners = left["metadata"].pop("ownerReferences")
    await farm.turn(controller)
    await farm.turn(controller)
    assert conditions(pool)["Stalled"] == "NameTaken"
    name = left["metadata"]["name"]
    assert f"`kubectl delete rs/{name} --namespace lab`" in str(pool["status"])
    left["metadata"]["ownerReferences"] = [{**owners[0], "uid": "of-its-namesake"}]
    farm.time.turn(20)
    await controller.reconcile_all()
    await controller.wait_idle()
    assert "Stalled" not in conditions(pool)


async def test_pool_that_cannot_even_be_read_stops_no_other(
    begin: Begin, yard: FakeCluster, farm: Farm, monkeypatch: pytest.MonkeyPatch
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


async def test_namespace_that_is_being_deleted(begin: Begin, yard: FakeCluster, farm: Farm) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    refusal = ForbiddenError("403 unable to create: because it is being terminated")
    yard.fail("create", resources.REPLICA_SETS, refusal, times=99)
    await farm.turn(begin())
    assert conditions(pool)["Stalled"] == "NamespaceTerminating"
    assert "rolebinding" not in str(pool["status"])


async def test_pool_with_nonsense_in_it_is_told_what_would_be_right(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    bad = yard.pool("lab", "bad", slots=0, imagee="x")
    good = yard.pool("lab", "good", minReplicas=1)
    controller = begin()
    await farm.come_up(controller)
    assert conditions(bad) == {"not Ready": "InvalidSpec", "Stalled": "InvalidSpec"}
    assert "did you mean image?" in str(bad["status"])
    assert conditions(good) == {"Ready": "Ready"}


async def test_pool_that_became_nonsense_keeps_its_workers(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=2)
    controller = begin()
    await farm.come_up(controller)
    yard.pool("lab", "gpu", slots="many")
    await farm.turn(controller, SCALE_DOWN_SECONDS)
    await farm.turn(controller, SCALE_DOWN_SECONDS)
    assert len(yard.pods()) == 2
    assert farm.ending() == []


async def test_template_that_the_server_refuses_is_told_of(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    refusal = InvalidError("create: 422 volumeMounts[4].mountPath: must be unique")
    yard.fail("create", resources.REPLICA_SETS, refusal, times=99)
    await farm.turn(begin())
    assert conditions(pool)["Stalled"] == "InvalidSpec"
    assert "must be unique" in str(pool["status"])


async def test_database_that_makes_no_roles_is_told_with_what_would_let_it(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    denied = errors.PermissionDeniedError("let a superuser run `ALTER ROLE me CREATEROLE`")
    monkeypatch.setattr(store, "grant_pool", mock.AsyncMock(side_effect=denied))
    await farm.turn(begin())
    assert conditions(pool) == {
        "not Ready": "DatabasePermissionDenied",
        "Stalled": "DatabasePermissionDenied",
    }
    assert "ALTER ROLE me CREATEROLE" in str(pool["status"])
    assert yard.pods() == []
