"""Pools that nobody applied: `default` where jobs want it, and those of the chart's values."""

import pathlib
import uuid

import pytest
from structlog.testing import capture_logs

from tests.controller.workerpools.conftest import Begin, Farm
from tests.controller.workerpools.fake_cluster import FakeCluster
from workron.store.api import Store
from workron.store.types import Registration
from workron_controller.kube import errors, resources


@pytest.fixture
def template(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "template.yaml"
    path.write_text("slots: 8\n")
    return path


@pytest.fixture
def asked(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "pools.yaml"


def _write(path: pathlib.Path, text: str) -> None:
    path.write_text(text)


async def test_default_pool_is_made_for_the_first_job_that_wants_it(
    begin: Begin, yard: FakeCluster, farm: Farm, template: pathlib.Path
) -> None:
    controller = begin(default_pool_file=template)
    await farm.turn(controller)
    assert yard.all(resources.WORKERPOOLS) == []
    await farm.submit(pool="default")
    await farm.turn(controller)
    [pool] = yard.all(resources.WORKERPOOLS)
    assert (pool["metadata"]["name"], pool["spec"]) == ("default", {"slots": 8})
    await farm.come_up(controller)
    assert len(yard.pods()) == 1
    assert controller.blocking_reason("lab", "default") is None


async def test_default_pool_is_made_nowhere_else(
    begin: Begin, yard: FakeCluster, farm: Farm, template: pathlib.Path
) -> None:
    controller = begin(default_pool_file=template, namespaces=["lab"])
    await farm.submit(pool="default", namespace="elsewhere")
    await farm.submit(pool="gpu")
    await farm.turn(controller)
    assert yard.all(resources.WORKERPOOLS) == []
    assert controller.blocking_reason("elsewhere", "default") is None


async def test_pool_that_people_run_themselves_is_left_to_them(
    begin: Begin, yard: FakeCluster, farm: Farm, store: Store, template: pathlib.Path
) -> None:
    for pool in ("default", "gpu"):
        token = await store.ensure_pool("lab", pool)
        await store.register(Registration(token, "bare metal", uuid.uuid4(), slots=1))
    controller = begin(default_pool_file=template)
    await farm.submit(pool="default")
    await farm.turn(controller)
    assert yard.all(resources.WORKERPOOLS) == []
    assert (
        controller.blocking_reason("lab", "default")
        is controller.blocking_reason("lab", "gpu")
        is None
    )


async def test_pool_that_does_not_exist_is_told_to_those_who_wait_for_it(
    begin: Begin, farm: Farm
) -> None:
    controller = begin()
    assert controller.blocking_reason("lab", "gpu") is None
    await farm.submit()
    await farm.turn(controller)
    hint = controller.blocking_reason("lab", "gpu")
    assert hint is not None
    assert hint.reason == "PoolNotFound"
    assert hint.message.startswith("WorkerPool gpu does not exist in namespace lab; create it")


async def test_default_pool_in_a_namespace_that_is_closed_is_told_with_the_command(
    begin: Begin, yard: FakeCluster, farm: Farm, template: pathlib.Path
) -> None:
    yard.closed.add("lab")
    controller = begin(default_pool_file=template)
    await farm.submit(pool="default")
    for _ in range(9):
        await farm.turn(controller, 1)
    hint = controller.blocking_reason("lab", "default")
    assert hint is not None
    assert hint.reason == "NamespaceNotEnabled"
    assert len(yard.writes()) == 1
    yard.closed.clear()
    await farm.turn(controller, 10)
    await farm.come_up(controller)
    assert controller.blocking_reason("lab", "default") is None


async def test_pools_of_the_values_are_as_they_say(
    begin: Begin, yard: FakeCluster, farm: Farm, asked: pathlib.Path
) -> None:
    _write(asked, "[{namespace: lab, name: gpu, spec: {slots: 2}}]")
    controller = begin(pools_file=asked)
    await farm.turn(controller)
    [pool] = yard.all(resources.WORKERPOOLS)
    assert pool["spec"] == {"slots": 2}
    _write(asked, "[{namespace: lab, name: gpu, spec: {slots: 3}}]")
    await farm.turn(controller)
    assert pool["spec"] == {"slots": 3}


async def test_pools_of_the_values_are_written_seldom_while_nothing_changes(
    begin: Begin, yard: FakeCluster, farm: Farm, asked: pathlib.Path
) -> None:
    _write(asked, "[{namespace: lab, name: gpu}]")
    controller = begin(pools_file=asked)
    for _ in range(20):
        await farm.turn(controller)
    assert sum(write.startswith("apply") for write in yard.writes()) == 1
    await farm.turn(controller, 300)
    await farm.turn(controller)
    assert sum(write.startswith("apply") for write in yard.writes()) == 2


async def test_pool_of_the_values_that_is_about_to_go_is_not_written_all_the_time(
    begin: Begin, yard: FakeCluster, farm: Farm, asked: pathlib.Path
) -> None:
    _write(asked, "[{namespace: lab, name: gpu}]")
    controller = begin(pools_file=asked)
    await farm.turn(controller)
    [pool] = yard.all(resources.WORKERPOOLS)
    pool["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for _ in range(30):
        await farm.turn(controller)
    assert sum(write.startswith("apply") for write in yard.writes()) < 8


async def test_pool_of_the_values_that_is_not_watched_is_said_once_and_not_made(
    begin: Begin, yard: FakeCluster, farm: Farm, asked: pathlib.Path
) -> None:
    _write(asked, "[{namespace: lab, name: gpu}]")
    controller = begin(pools_file=asked, namespaces=["open"])
    with capture_logs() as logs:
        for _ in range(3):
            await farm.turn(controller)
    assert yard.writes() == []
    assert len([line for line in logs if "not watched" in line["event"]]) == 1


async def test_pool_of_the_values_that_somebody_deleted_is_back_soon(
    begin: Begin, yard: FakeCluster, farm: Farm, asked: pathlib.Path
) -> None:
    _write(asked, "[{namespace: lab, name: gpu}]")
    controller = begin(pools_file=asked)
    await farm.turn(controller)
    await farm.turn(controller)
    del yard.objects[resources.WORKERPOOLS, "lab", "gpu"]
    await farm.turn(controller, 10)
    await farm.turn(controller)
    assert len(yard.all(resources.WORKERPOOLS)) == 1


async def test_pool_of_the_values_that_cannot_be_made_keeps_no_other_from_it(
    begin: Begin, yard: FakeCluster, farm: Farm, asked: pathlib.Path
) -> None:
    _write(asked, "[{namespace: nowhere, name: gpu}, {namespace: lab, name: gpu}]")
    absent = errors.ObjectNotFoundError('404 namespaces "nowhere" not found')
    yard.fail("apply", resources.WORKERPOOLS, absent, times=99, namespace="nowhere")
    controller = begin(pools_file=asked)
    await farm.turn(controller)
    [pool] = yard.all(resources.WORKERPOOLS)
    assert pool["metadata"]["namespace"] == "lab"
