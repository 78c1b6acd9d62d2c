"""When problems are written, recorded as events, logged and retried."""

from unittest import mock

import pytest
from structlog.testing import capture_logs

from tests.controller.workerpools import fake_cluster
from tests.controller.workerpools.conftest import PoolHarness
from tests.controller.workerpools.fake_cluster import FakeCluster, conditions
from workron.core import errors
from workron.store.api import Store
from workron_controller.kube import resources
from workron_controller.kube.errors import ForbiddenError, UnreachableError
from workron_controller.kube.events import InvolvedObject


async def test_event_is_recorded_when_a_problem_appears_or_changes(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", replicas=2, image="missing:1")
    controller = harness.new_controller()
    await harness.round(controller)
    assert harness.recorded_events == []
    for number, reason in enumerate(("ErrImagePull", "ImagePullBackOff", "ErrImagePull")):
        fake_cluster.set_waiting(cluster.pods()[number % 2], reason, f"try {number}")
        await harness.round(controller, 20)
    assert [event.cause.reason for event in harness.recorded_events] == ["ImagePullFailed"]
    assert harness.recorded_events[0].involved == InvolvedObject(
        "WorkerPool", "lab", "gpu", pool["metadata"]["uid"]
    )
    new_leader = harness.new_controller()
    await harness.round(new_leader, 20)
    cluster.quota = 0
    cluster.apply_pool("lab", "gpu", replicas=3, image="missing:1")
    for _ in range(3):
        await harness.round(new_leader, 20)
    assert [event.cause.reason for event in harness.recorded_events] == [
        "ImagePullFailed",
        "QuotaExceeded",
    ]


async def test_event_is_recorded_for_a_database_outage_but_not_for_an_unschedulable_pod(
    harness: PoolHarness, cluster: FakeCluster, store: Store
) -> None:
    pool = cluster.apply_pool("lab", "gpu", replicas=1)
    controller = harness.new_controller()
    await harness.round(controller)
    [pod] = cluster.pods()
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod["status"] = {"phase": "Pending", "conditions": [{**unschedulable, "message": "0/1 nodes"}]}
    await harness.round(controller, 20)
    assert conditions(pool)["not Ready"] == "Unschedulable"
    reason = controller.blocking_reason("lab", "gpu")
    assert reason is not None
    assert (reason.reason, "0/1 nodes" in reason.message) == ("Unschedulable", True)
    assert harness.recorded_events == []
    unavailable = errors.StoreTimeoutError("connection refused")
    with mock.patch.object(store, "list_workers", side_effect=unavailable):
        for _ in range(3):
            await harness.round(controller, 20)
    assert [event.cause.reason for event in harness.recorded_events] == ["DatabaseUnavailable"]


async def test_event_is_recorded_only_when_the_status_is_written(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu", slots="many")
    controller = harness.new_controller()
    cluster.fail("status", resources.WORKERPOOLS, ForbiddenError("403"))
    await harness.round(controller, 20)
    assert harness.recorded_events == []
    await harness.round(controller, 20)
    assert [event.cause.reason for event in harness.recorded_events] == ["InvalidSpec"]


async def test_pauses_grow_when_the_status_write_is_forbidden(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", replicas=1)
    controller = harness.new_controller()
    cluster.fail("status", resources.WORKERPOOLS, ForbiddenError("403"), times=1_000)
    for _ in range(600):
        await harness.round(controller, 2)
    # At once, and then 1, 2, 4, … seconds later, up to 300.
    tries = [verb for verb, _ in cluster.requests if verb == "status"]
    assert 9 <= len(tries) <= 12
    cluster.stop_failing()
    for _ in range(150):
        await harness.round(controller, 2)
    assert conditions(pool)["not Ready"] == "Starting"


async def test_status_is_written_in_the_next_round_when_the_api_server_is_back(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    pool = cluster.apply_pool("lab", "gpu", replicas=1)
    controller = harness.new_controller()
    cluster.fail("status", resources.WORKERPOOLS, UnreachableError("no answer"), times=5)
    for _ in range(5):
        await harness.round(controller, 2)
        assert "status" not in pool
    await harness.round(controller, 2)
    assert conditions(pool)["not Ready"] == "Starting"


async def test_requests_are_rare_when_the_namespace_is_forbidden(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu", minReplicas=1)
    cluster.forbidden.add("lab")
    controller = harness.new_controller()
    for _ in range(30):
        await harness.round(controller, 1)
    lists = [path for _, path in cluster.requests if path.resource == resources.REPLICA_SETS]
    assert len(lists) == 2


async def test_grants_are_rare_when_the_secret_is_rejected(
    harness: PoolHarness, cluster: FakeCluster, grants: mock.AsyncMock
) -> None:
    pool = cluster.apply_pool("lab", "gpu", minReplicas=1)
    denied = ForbiddenError('403 secrets "x" is forbidden: exceeded quota: small')
    cluster.fail("apply", resources.SECRETS, denied, times=99)
    controller = harness.new_controller()
    for _ in range(30):
        await harness.round(controller)
    assert conditions(pool)["Stalled"] == "QuotaExceeded"
    assert grants.await_count == 4


async def test_warnings_are_logged_once_when_a_problem_stays(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("open", "gpu", minReplicas=1)
    cluster.fail("list", resources.WORKERPOOLS, ForbiddenError("403"), times=99, namespace="lab")
    cluster.fail("status", resources.WORKERPOOLS, ForbiddenError("403"), times=99)
    controller = harness.new_controller(namespaces=["lab", "open"])
    with capture_logs() as logs:
        for _ in range(5):
            await harness.round(controller)
    events = [line["event"] for line in logs if line["log_level"] == "warning"]
    assert sorted(events) == ["pool status not written", "pools not listed"]


async def test_jobs_report_no_problem_when_their_namespace_cannot_be_listed(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.fail("list", resources.WORKERPOOLS, ForbiddenError("403"), times=9, namespace="lab")
    good = cluster.apply_pool("open", "gpu", minReplicas=1)
    controller = harness.new_controller(namespaces=["lab", "open"])
    await harness.submit()
    await harness.round(controller)
    assert controller.blocking_reason("lab", "gpu") is None
    assert good["status"]["desiredReplicas"] == 1


async def test_pools_are_kept_when_the_list_is_forbidden(
    harness: PoolHarness, cluster: FakeCluster
) -> None:
    cluster.apply_pool("lab", "gpu")
    controller = harness.new_controller()
    await harness.submit()
    await harness.round(controller)
    cluster.fail("list", resources.WORKERPOOLS, ForbiddenError("403"))
    with pytest.raises(ForbiddenError):
        await controller.reconcile_all()
    assert controller.blocking_reason("lab", "gpu") is None
