"""How often trouble is told of, logged and tried again: when it comes, and then seldom."""

from unittest import mock

import pytest
from structlog.testing import capture_logs

from tests.controller.workerpools import fake_cluster
from tests.controller.workerpools.conftest import Begin, Farm
from tests.controller.workerpools.fake_cluster import FakeCluster, conditions
from workron.core import errors
from workron.store.api import Store
from workron_controller.kube import resources
from workron_controller.kube.errors import ForbiddenError
from workron_controller.kube.events import InvolvedObject, KubernetesEvent

_COMMAND = (
    "kubectl create rolebinding workron-pools --clusterrole=workron-pools"
    " --serviceaccount=workron:workron-controller --namespace lab"
)


async def test_trouble_is_a_notice_when_it_comes_or_changes_and_none_while_it_stays(
    begin: Begin, yard: FakeCluster, farm: Farm, notices: list[KubernetesEvent]
) -> None:
    pool = yard.pool("lab", "gpu", replicas=2, image="nowhere:1")
    controller = begin()
    await farm.turn(controller)
    assert notices == []
    for number, reason in enumerate(("ErrImagePull", "ImagePullBackOff", "ErrImagePull")):
        fake_cluster.waits(yard.pods()[number % 2], reason, f"try {number}")
        await farm.turn(controller, 20)
    assert [notice.cause.reason for notice in notices] == ["ImagePullFailed"]
    assert notices[0].involved == InvolvedObject(
        "WorkerPool", "lab", "gpu", pool["metadata"]["uid"]
    )
    begin_again = begin()
    await farm.turn(begin_again, 20)
    yard.quota = 0
    yard.pool("lab", "gpu", replicas=3, image="nowhere:1")
    for _ in range(3):
        await farm.turn(begin_again, 20)
    assert [notice.cause.reason for notice in notices] == ["ImagePullFailed", "QuotaExceeded"]


async def test_database_that_is_away_is_a_notice_and_a_node_that_is_sought_is_none(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store, notices: list[KubernetesEvent]
) -> None:
    pool = yard.pool("lab", "gpu", replicas=1)
    controller = begin()
    await farm.turn(controller)
    [pod] = yard.pods()
    sought = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod["status"] = {"phase": "Pending", "conditions": [{**sought, "message": "0/1 nodes"}]}
    await farm.turn(controller, 20)
    assert conditions(pool)["not Ready"] == "Unschedulable"
    hint = controller.blocking_reason("lab", "gpu")
    assert hint is not None
    assert (hint.reason, "0/1 nodes" in hint.message) == ("Unschedulable", True)
    assert notices == []
    away = errors.StoreTimeoutError("connection refused")
    with mock.patch.object(store, "list_workers", side_effect=away):
        for _ in range(3):
            await farm.turn(controller, 20)
    assert [notice.cause.reason for notice in notices] == ["DatabaseUnavailable"]


async def test_status_that_is_not_written_is_no_notice(
    begin: Begin, yard: FakeCluster, farm: Farm, notices: list[KubernetesEvent]
) -> None:
    yard.pool("lab", "gpu", slots="many")
    controller = begin()
    yard.fail("status", resources.WORKERPOOLS, ForbiddenError("403"))
    await farm.turn(controller, 20)
    assert notices == []
    await farm.turn(controller, 20)
    assert [notice.cause.reason for notice in notices] == ["InvalidSpec"]


async def test_status_that_may_not_be_written_is_tried_more_and_more_seldom(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    pool = yard.pool("lab", "gpu", replicas=1)
    controller = begin()
    yard.fail("status", resources.WORKERPOOLS, ForbiddenError("403"), times=1_000)
    for _ in range(600):
        await farm.turn(controller, 2)
    # At once, and then 1, 2, 4, ... seconds later, up to 300.
    tries = [verb for verb, _ in yard.asked if verb == "status"]
    assert 9 <= len(tries) <= 12
    yard.stop_failing()
    for _ in range(150):
        await farm.turn(controller, 2)
    assert conditions(pool)["not Ready"] == "Starting"


async def test_namespace_that_stays_closed_is_not_asked_all_the_time(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "gpu", minReplicas=1)
    yard.closed.add("lab")
    controller = begin()
    for _ in range(30):
        await farm.turn(controller, 1)
    asked = [place for _, place in yard.asked if place.resource == resources.REPLICA_SETS]
    assert len(asked) == 2


async def test_what_is_refused_is_not_asked_for_all_the_time(
    begin: Begin, yard: FakeCluster, farm: Farm, admit: mock.AsyncMock
) -> None:
    pool = yard.pool("lab", "gpu", minReplicas=1)
    full = ForbiddenError('403 secrets "x" is forbidden: exceeded quota: small')
    yard.fail("apply", resources.SECRETS, full, times=99)
    controller = begin()
    for _ in range(30):
        await farm.turn(controller)
    assert conditions(pool)["Stalled"] == "QuotaExceeded"
    assert admit.await_count == 4


async def test_same_trouble_is_logged_once(begin: Begin, yard: FakeCluster, farm: Farm) -> None:
    yard.pool("open", "gpu", minReplicas=1)
    yard.fail("list", resources.WORKERPOOLS, ForbiddenError("403"), times=99, namespace="lab")
    yard.fail("status", resources.WORKERPOOLS, ForbiddenError("403"), times=99)
    controller = begin(namespaces=["lab", "open"])
    with capture_logs() as logs:
        for _ in range(5):
            await farm.turn(controller)
    events = [line["event"] for line in logs if line["log_level"] == "warning"]
    assert sorted(events) == ["pool status not written", "pools not listed"]


async def test_nothing_is_said_of_pools_that_may_not_be_listed(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.fail("list", resources.WORKERPOOLS, ForbiddenError("403"), times=9, namespace="lab")
    good = yard.pool("open", "gpu", minReplicas=1)
    controller = begin(namespaces=["lab", "open"])
    await farm.submit()
    await farm.turn(controller)
    assert controller.blocking_reason("lab", "gpu") is None
    assert good["status"]["desiredReplicas"] == 1


async def test_pools_are_not_forgotten_when_none_may_be_listed_any_more(
    begin: Begin, yard: FakeCluster, farm: Farm
) -> None:
    yard.pool("lab", "gpu")
    controller = begin()
    await farm.submit()
    await farm.turn(controller)
    yard.fail("list", resources.WORKERPOOLS, ForbiddenError("403"))
    with pytest.raises(ForbiddenError):
        await controller.reconcile_all()
    assert controller.blocking_reason("lab", "gpu") is None
