"""Pools that cannot have their workers report why, and affect no other pool."""

from collections.abc import Mapping
from typing import Any
from unittest import mock

import pytest

from tests.controller.workerpools import fake_cluster
from tests.controller.workerpools.conftest import PoolHarness
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


async def test_pool_is_stalled_until_the_image_can_be_pulled(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", image="missing:1")
    controller = harness.new_controller()
    await harness.submit()
    await harness.round(controller)
    [pod] = cluster.pods()
    fake_cluster.set_waiting(pod, "ImagePullBackOff", 'no such image "missing:1"')
    await harness.round(controller)
    assert conditions(pool) == {"not Ready": "ImagePullFailed", "Stalled": "ImagePullFailed"}
    reason = controller.blocking_reason("lab", "gpu")
    assert reason is not None
    assert (reason.reason, "missing:1" in reason.message) == ("ImagePullFailed", True)
    cluster.apply_pool("lab", "gpu", image="valid:1")
    await harness.start_workers(controller)
    await harness.round(controller)
    assert conditions(pool) == {"Ready": "Ready"}
    assert controller.blocking_reason("lab", "gpu") is None


async def test_old_workers_stay_when_the_image_of_a_new_revision_is_invalid(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", minReplicas=2)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    cluster.apply_pool("lab", "gpu", minReplicas=2, image="missing:1")
    await harness.round(controller)
    [new] = [pod for pod in cluster.pods() if not pod["status"]]
    fake_cluster.set_waiting(new, "ErrImagePull")
    for _ in range(5):
        await harness.round(controller)
    assert harness.terminating() == []
    assert conditions(pool) == {"Ready": "Ready", "Stalled": "ImagePullFailed"}


async def test_pool_is_stalled_until_the_quota_is_raised(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", replicas=3)
    cluster.quota = 1
    controller = harness.new_controller()
    await harness.start_workers(controller)
    assert conditions(pool) == {"not Ready": "QuotaExceeded", "Stalled": "QuotaExceeded"}
    assert len(cluster.pods()) == 1
    cluster.quota = 3
    await harness.round(controller)
    await harness.start_workers(controller)
    assert conditions(pool) == {"Ready": "Ready"}


async def test_pool_is_stalled_until_its_namespace_is_enabled(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu")
    cluster.forbidden.add("lab")
    controller = harness.new_controller()
    await harness.submit()
    await harness.round(controller)
    assert conditions(pool) == {
        "not Ready": "NamespaceNotEnabled",
        "Stalled": "NamespaceNotEnabled",
    }
    reason = controller.blocking_reason("lab", "gpu")
    assert reason is not None
    assert reason.message.endswith(_COMMAND)
    cluster.forbidden.clear()
    await harness.round(controller, SCALE_DOWN_SECONDS)
    await harness.start_workers(controller)
    assert conditions(pool) == {"Ready": "Ready"}
    assert controller.blocking_reason("lab", "gpu") is None


async def test_pool_is_stalled_when_its_replica_set_belongs_to_another_owner(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", minReplicas=1)
    controller = harness.new_controller()
    await harness.round(controller)
    [orphan] = cluster.objects_of(resources.REPLICA_SETS)
    owners = orphan["metadata"].pop("ownerReferences")
    await harness.round(controller)
    await harness.round(controller)
    assert conditions(pool)["Stalled"] == "NameTaken"
    name = orphan["metadata"]["name"]
    assert f"`kubectl delete rs/{name} --namespace lab`" in str(pool["status"])
    orphan["metadata"]["ownerReferences"] = [{**owners[0], "uid": "uid-of-a-deleted-pool"}]
    harness.time.advance(20)
    await controller.reconcile_all()
    await controller.wait_idle()
    assert "Stalled" not in conditions(pool)


async def test_other_pools_are_reconciled_when_one_cannot_be_parsed(
    harness: PoolHarness, cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = cluster.apply_pool("lab", "bad", slots=7)
    good = cluster.apply_pool("lab", "good", minReplicas=1)
    parse = WorkerPool.parse

    def fail_for_one(raw: Mapping[str, Any]) -> WorkerPool:
        if raw["metadata"]["name"] == "bad":
            raise RecursionError("too deep")
        return parse(raw)

    monkeypatch.setattr(WorkerPool, "parse", fail_for_one)
    await harness.start_workers(harness.new_controller())
    assert conditions(good) == {"Ready": "Ready"}
    assert conditions(bad)["Stalled"] == "InvalidSpec"


async def test_pool_is_stalled_when_its_namespace_is_terminating(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", minReplicas=1)
    error = ForbiddenError("403 unable to create: because it is being terminated")
    cluster.fail("create", resources.REPLICA_SETS, error, times=99)
    await harness.round(harness.new_controller())
    assert conditions(pool)["Stalled"] == "NamespaceTerminating"
    assert "rolebinding" not in str(pool["status"])


async def test_pool_is_stalled_with_a_suggestion_when_its_spec_is_invalid(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    bad = cluster.apply_pool("lab", "bad", slots=0, imagee="x")
    good = cluster.apply_pool("lab", "good", minReplicas=1)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    assert conditions(bad) == {"not Ready": "InvalidSpec", "Stalled": "InvalidSpec"}
    assert "did you mean image?" in str(bad["status"])
    assert conditions(good) == {"Ready": "Ready"}


async def test_workers_are_kept_when_the_spec_becomes_invalid(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu", minReplicas=2)
    controller = harness.new_controller()
    await harness.start_workers(controller)
    cluster.apply_pool("lab", "gpu", slots="many")
    await harness.round(controller, SCALE_DOWN_SECONDS)
    await harness.round(controller, SCALE_DOWN_SECONDS)
    assert len(cluster.pods()) == 2
    assert harness.terminating() == []


async def test_pool_is_stalled_when_the_api_server_rejects_the_pod_template(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", minReplicas=1)
    error = InvalidError("create: 422 volumeMounts[4].mountPath: must be unique")
    cluster.fail("create", resources.REPLICA_SETS, error, times=99)
    await harness.round(harness.new_controller())
    assert conditions(pool)["Stalled"] == "InvalidSpec"
    assert "must be unique" in str(pool["status"])


async def test_pool_is_stalled_when_the_database_denies_the_grant(
    harness: PoolHarness, cluster: FakeCluster, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = cluster.apply_pool("lab", "gpu", minReplicas=1)
    denied = errors.PermissionDeniedError("let a superuser run `ALTER ROLE me CREATEROLE`")
    monkeypatch.setattr(store, "grant_pool", mock.AsyncMock(side_effect=denied))
    await harness.round(harness.new_controller())
    assert conditions(pool) == {
        "not Ready": "DatabasePermissionDenied",
        "Stalled": "DatabasePermissionDenied",
    }
    assert "ALTER ROLE me CREATEROLE" in str(pool["status"])
    assert cluster.pods() == []
