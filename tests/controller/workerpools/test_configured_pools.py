"""Pools of the installation: the files, and the objects that are created from them."""

import pathlib
import uuid

import pytest
from structlog.testing import capture_logs

from tests.controller.workerpools.conftest import PoolHarness
from tests.controller.workerpools.fake_cluster import FakeCluster
from workron.store.api import Store
from workron.store.types import Registration
from workron_controller.kube import errors, resources
from workron_controller.workerpools import configured_pools
from workron_controller.workerpools.manifests import name_of


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "pools.yaml"


def test_pools_are_read_from_a_list(file: pathlib.Path) -> None:
    file.write_text("- {namespace: lab, name: gpu, spec: {slots: 2}}\n- {name: plain}\n")
    one, other = configured_pools.configured_pools(file)
    assert (name_of(one), one["spec"]) == (("lab", "gpu"), {"slots": 2})
    assert (name_of(other), other["spec"]) == (("default", "plain"), {})
    assert one["kind"] == "WorkerPool"


@pytest.mark.parametrize(
    ("text", "logged"),
    [
        ("- nonsense", "fields"),
        ("- {name: bad, slots: 4}", "fields"),
        ("- {name: bad, spec: {slotz: 4}}", "did you mean slots"),
        ("- {name: Bad}", "Bad"),
        ("- {name: [], namespace: {}}", "metadata"),
    ],
)
def test_other_pools_are_read_when_one_is_invalid(
    file: pathlib.Path, text: str, logged: str
) -> None:
    file.write_text(f"{text}\n- {{name: good}}\n")
    with capture_logs() as logs:
        assert [name_of(one) for one in configured_pools.configured_pools(file)] == [
            ("default", "good")
        ]
    assert logged in str(logs)


@pytest.mark.parametrize("text", ["{name: no-list}", "- [", "\0"])
def test_warning_is_logged_when_the_file_is_not_a_list(file: pathlib.Path, text: str) -> None:
    file.write_text(text)
    with capture_logs() as logs:
        assert configured_pools.configured_pools(file) == []
    assert str(file) in str(logs)


def test_no_pools_are_read_when_the_file_is_missing_or_empty(file: pathlib.Path) -> None:
    assert configured_pools.configured_pools(file) == configured_pools.configured_pools(None) == []
    file.write_text("")
    assert configured_pools.configured_pools(file) == []


def test_error_is_logged_once_when_the_file_does_not_change(file: pathlib.Path) -> None:
    file.write_text("- {name: bad, slots: 4}")
    with capture_logs() as logs:
        configured_pools.configured_pools(file)
        configured_pools.configured_pools(file)
        file.write_text("- {name: worse, slots: 4}")
        configured_pools.configured_pools(file)
    assert len(logs) == 2


def test_default_pool_has_the_spec_of_its_file(file: pathlib.Path) -> None:
    file.write_text("slots: 8\nmaxReplicas: 3\n")
    found = configured_pools.default_pool(file, "lab")
    assert found is not None
    assert name_of(found) == ("lab", "default")
    assert found["spec"] == {"slots": 8, "maxReplicas": 3}
    assert configured_pools.default_pool(None, "lab") is None


def test_default_pool_has_an_empty_spec_when_its_file_is_empty(file: pathlib.Path) -> None:
    file.write_text("{}\n")
    found = configured_pools.default_pool(file, "lab")
    assert found is not None
    assert found["spec"] == {}


def test_default_pool_is_missing_when_its_file_is_invalid(file: pathlib.Path) -> None:
    file.write_text("slots: many\n")
    with capture_logs() as logs:
        assert configured_pools.default_pool(file, "lab") is None
    assert "spec.slots" in str(logs)


def test_missing_file_is_logged_once_and_read_when_it_exists(file: pathlib.Path) -> None:
    with capture_logs() as logs:
        for _ in range(3):
            assert configured_pools.configured_pools(file) == []
            assert configured_pools.default_pool(file, "lab") is None
    assert [line["error"] for line in logs] == 2 * ["No such file or directory"]
    file.write_text("- {name: plain}\n")
    assert len(configured_pools.configured_pools(file)) == 1


@pytest.fixture
def default_file(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "default.yaml"
    path.write_text("slots: 8\n")
    return path


def _write(path: pathlib.Path, text: str) -> None:
    path.write_text(text)


async def test_default_pool_is_created_when_a_job_needs_it(
    harness: PoolHarness, cluster: FakeCluster, default_file: pathlib.Path
) -> None:
    controller = harness.new_controller(default_pool_file=default_file)
    await harness.round(controller)
    assert cluster.objects_of(resources.WORKERPOOLS) == []
    await harness.submit(pool="default")
    await harness.round(controller)
    [pool] = cluster.objects_of(resources.WORKERPOOLS)
    assert (pool["metadata"]["name"], pool["spec"]) == ("default", {"slots": 8})
    await harness.start_workers(controller)
    assert len(cluster.pods()) == 1
    assert controller.blocking_reason("lab", "default") is None


async def test_default_pool_is_not_created_in_an_unwatched_namespace(
    harness: PoolHarness, cluster: FakeCluster, default_file: pathlib.Path
) -> None:
    controller = harness.new_controller(default_pool_file=default_file, namespaces=["lab"])
    await harness.submit(pool="default", namespace="elsewhere")
    await harness.submit(pool="gpu")
    await harness.round(controller)
    assert cluster.objects_of(resources.WORKERPOOLS) == []
    assert controller.blocking_reason("elsewhere", "default") is None


async def test_default_pool_is_not_created_when_users_run_its_workers(
    harness: PoolHarness, cluster: FakeCluster, store: Store, default_file: pathlib.Path
) -> None:
    for pool in ("default", "gpu"):
        token = await store.ensure_pool("lab", pool)
        await store.register(Registration(token, "bare metal", uuid.uuid4(), slots=1))
    controller = harness.new_controller(default_pool_file=default_file)
    await harness.submit(pool="default")
    await harness.round(controller)
    assert cluster.objects_of(resources.WORKERPOOLS) == []
    assert (
        controller.blocking_reason("lab", "default")
        is controller.blocking_reason("lab", "gpu")
        is None
    )


async def test_jobs_report_the_missing_pool_when_it_does_not_exist(harness: PoolHarness) -> None:
    controller = harness.new_controller()
    assert controller.blocking_reason("lab", "gpu") is None
    await harness.submit()
    await harness.round(controller)
    reason = controller.blocking_reason("lab", "gpu")
    assert reason is not None
    assert reason.reason == "PoolNotFound"
    assert reason.message.startswith("WorkerPool gpu does not exist in namespace lab; create it")


async def test_jobs_report_the_command_when_the_default_pool_cannot_be_created(
    harness: PoolHarness, cluster: FakeCluster, default_file: pathlib.Path
) -> None:
    cluster.forbidden.add("lab")
    controller = harness.new_controller(default_pool_file=default_file)
    await harness.submit(pool="default")
    for _ in range(9):
        await harness.round(controller, 1)
    reason = controller.blocking_reason("lab", "default")
    assert reason is not None
    assert reason.reason == "NamespaceNotEnabled"
    assert len(cluster.writes()) == 1
    cluster.forbidden.clear()
    await harness.round(controller, 10)
    await harness.start_workers(controller)
    assert controller.blocking_reason("lab", "default") is None


async def test_configured_pool_is_updated_when_its_file_changes(
    harness: PoolHarness, cluster: FakeCluster, file: pathlib.Path
) -> None:
    _write(file, "[{namespace: lab, name: gpu, spec: {slots: 2}}]")
    controller = harness.new_controller(pools_file=file)
    await harness.round(controller)
    [pool] = cluster.objects_of(resources.WORKERPOOLS)
    assert pool["spec"] == {"slots": 2}
    _write(file, "[{namespace: lab, name: gpu, spec: {slots: 3}}]")
    await harness.round(controller)
    assert pool["spec"] == {"slots": 3}


async def test_configured_pool_is_applied_rarely_when_nothing_changes(
    harness: PoolHarness, cluster: FakeCluster, file: pathlib.Path
) -> None:
    _write(file, "[{namespace: lab, name: gpu}]")
    controller = harness.new_controller(pools_file=file)
    for _ in range(20):
        await harness.round(controller)
    assert sum(write.startswith("apply") for write in cluster.writes()) == 1
    await harness.round(controller, 300)
    await harness.round(controller)
    assert sum(write.startswith("apply") for write in cluster.writes()) == 2


async def test_configured_pool_is_applied_rarely_when_it_is_terminating(
    harness: PoolHarness, cluster: FakeCluster, file: pathlib.Path
) -> None:
    _write(file, "[{namespace: lab, name: gpu}]")
    controller = harness.new_controller(pools_file=file)
    await harness.round(controller)
    [pool] = cluster.objects_of(resources.WORKERPOOLS)
    pool["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for _ in range(30):
        await harness.round(controller)
    assert sum(write.startswith("apply") for write in cluster.writes()) < 8


async def test_configured_pool_is_logged_once_and_ignored_when_its_namespace_is_not_watched(
    harness: PoolHarness, cluster: FakeCluster, file: pathlib.Path
) -> None:
    _write(file, "[{namespace: lab, name: gpu}]")
    controller = harness.new_controller(pools_file=file, namespaces=["open"])
    with capture_logs() as logs:
        for _ in range(3):
            await harness.round(controller)
    assert cluster.writes() == []
    assert len([line for line in logs if "not watched" in line["event"]]) == 1


async def test_configured_pool_is_created_again_when_a_user_deletes_it(
    harness: PoolHarness, cluster: FakeCluster, file: pathlib.Path
) -> None:
    _write(file, "[{namespace: lab, name: gpu}]")
    controller = harness.new_controller(pools_file=file)
    await harness.round(controller)
    await harness.round(controller)
    del cluster.objects[resources.WORKERPOOLS, "lab", "gpu"]
    await harness.round(controller, 10)
    await harness.round(controller)
    assert len(cluster.objects_of(resources.WORKERPOOLS)) == 1


async def test_other_configured_pools_are_created_when_one_fails(
    harness: PoolHarness, cluster: FakeCluster, file: pathlib.Path
) -> None:
    _write(file, "[{namespace: missing, name: gpu}, {namespace: lab, name: gpu}]")
    error = errors.ObjectNotFoundError('404 namespaces "missing" not found')
    cluster.fail("apply", resources.WORKERPOOLS, error, times=99, namespace="missing")
    controller = harness.new_controller(pools_file=file)
    await harness.round(controller)
    [pool] = cluster.objects_of(resources.WORKERPOOLS)
    assert pool["metadata"]["namespace"] == "lab"
