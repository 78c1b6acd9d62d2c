"""Pools that nobody applied: `default` where jobs want it, and those of the chart's values."""

import pathlib
import uuid

import pytest
from structlog.testing import capture_logs

from tests.controller.pools.conftest import Begin, Farm
from tests.controller.pools.yard import Yard
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
    begin: Begin, yard: Yard, farm: Farm, template: pathlib.Path
) -> None:
    keeper = begin(template=template)
    await farm.turn(keeper)
    assert yard.all(resources.WORKERPOOLS) == []
    await farm.submit(pool="default")
    await farm.turn(keeper)
    [pool] = yard.all(resources.WORKERPOOLS)
    assert (pool["metadata"]["name"], pool["spec"]) == ("default", {"slots": 8})
    await farm.come_up(keeper)
    assert len(yard.pods()) == 1
    assert keeper.hint("lab", "default") is None


async def test_default_pool_is_made_nowhere_else(
    begin: Begin, yard: Yard, farm: Farm, template: pathlib.Path
) -> None:
    keeper = begin(template=template, namespaces=["lab"])
    await farm.submit(pool="default", namespace="elsewhere")
    await farm.submit(pool="gpu")
    await farm.turn(keeper)
    assert yard.all(resources.WORKERPOOLS) == []
    assert keeper.hint("elsewhere", "default") is None


async def test_pool_that_people_run_themselves_is_left_to_them(
    begin: Begin, yard: Yard, farm: Farm, store: Store, template: pathlib.Path
) -> None:
    for pool in ("default", "gpu"):
        token = await store.ensure_pool("lab", pool)
        await store.register(Registration(token, "bare metal", uuid.uuid4(), slots=1))
    keeper = begin(template=template)
    await farm.submit(pool="default")
    await farm.turn(keeper)
    assert yard.all(resources.WORKERPOOLS) == []
    assert keeper.hint("lab", "default") is keeper.hint("lab", "gpu") is None


async def test_pool_that_does_not_exist_is_told_to_those_who_wait_for_it(
    begin: Begin, farm: Farm
) -> None:
    keeper = begin()
    assert keeper.hint("lab", "gpu") is None
    await farm.submit()
    await farm.turn(keeper)
    hint = keeper.hint("lab", "gpu")
    assert hint is not None
    assert hint.reason == "PoolNotFound"
    assert hint.message.startswith("there is no WorkerPool gpu in namespace lab; make it")


async def test_default_pool_in_a_namespace_that_is_closed_is_told_with_the_command(
    begin: Begin, yard: Yard, farm: Farm, template: pathlib.Path
) -> None:
    yard.closed.add("lab")
    keeper = begin(template=template)
    await farm.submit(pool="default")
    for _ in range(9):
        await farm.turn(keeper, 1)
    hint = keeper.hint("lab", "default")
    assert hint is not None
    assert hint.reason == "NamespaceNotEnabled"
    assert len(yard.writes()) == 1
    yard.closed.clear()
    await farm.turn(keeper, 10)
    await farm.come_up(keeper)
    assert keeper.hint("lab", "default") is None


async def test_pools_of_the_values_are_as_they_say(
    begin: Begin, yard: Yard, farm: Farm, asked: pathlib.Path
) -> None:
    _write(asked, "[{namespace: lab, name: gpu, spec: {slots: 2}}]")
    keeper = begin(asked=asked)
    await farm.turn(keeper)
    [pool] = yard.all(resources.WORKERPOOLS)
    assert pool["spec"] == {"slots": 2}
    _write(asked, "[{namespace: lab, name: gpu, spec: {slots: 3}}]")
    await farm.turn(keeper)
    assert pool["spec"] == {"slots": 3}


async def test_pools_of_the_values_are_written_seldom_while_nothing_changes(
    begin: Begin, yard: Yard, farm: Farm, asked: pathlib.Path
) -> None:
    _write(asked, "[{namespace: lab, name: gpu}]")
    keeper = begin(asked=asked)
    for _ in range(20):
        await farm.turn(keeper)
    assert sum(write.startswith("apply") for write in yard.writes()) == 1
    await farm.turn(keeper, 300)
    await farm.turn(keeper)
    assert sum(write.startswith("apply") for write in yard.writes()) == 2


async def test_pool_of_the_values_that_is_about_to_go_is_not_written_all_the_time(
    begin: Begin, yard: Yard, farm: Farm, asked: pathlib.Path
) -> None:
    _write(asked, "[{namespace: lab, name: gpu}]")
    keeper = begin(asked=asked)
    await farm.turn(keeper)
    [pool] = yard.all(resources.WORKERPOOLS)
    pool["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for _ in range(30):
        await farm.turn(keeper)
    assert sum(write.startswith("apply") for write in yard.writes()) < 8


async def test_pool_of_the_values_that_is_not_watched_is_said_once_and_not_made(
    begin: Begin, yard: Yard, farm: Farm, asked: pathlib.Path
) -> None:
    _write(asked, "[{namespace: lab, name: gpu}]")
    keeper = begin(asked=asked, namespaces=["open"])
    with capture_logs() as logs:
        for _ in range(3):
            await farm.turn(keeper)
    assert yard.writes() == []
    assert len([line for line in logs if "not watched" in line["event"]]) == 1


async def test_pool_of_the_values_that_somebody_deleted_is_back_soon(
    begin: Begin, yard: Yard, farm: Farm, asked: pathlib.Path
) -> None:
    _write(asked, "[{namespace: lab, name: gpu}]")
    keeper = begin(asked=asked)
    await farm.turn(keeper)
    await farm.turn(keeper)
    del yard.objects[resources.WORKERPOOLS, "lab", "gpu"]
    await farm.turn(keeper, 10)
    await farm.turn(keeper)
    assert len(yard.all(resources.WORKERPOOLS)) == 1


async def test_pool_of_the_values_that_cannot_be_made_keeps_no_other_from_it(
    begin: Begin, yard: Yard, farm: Farm, asked: pathlib.Path
) -> None:
    _write(asked, "[{namespace: nowhere, name: gpu}, {namespace: lab, name: gpu}]")
    absent = errors.ObjectNotFoundError('404 namespaces "nowhere" not found')
    yard.fail("apply", resources.WORKERPOOLS, absent, times=99, namespace="nowhere")
    keeper = begin(asked=asked)
    await farm.turn(keeper)
    [pool] = yard.all(resources.WORKERPOOLS)
    assert pool["metadata"]["namespace"] == "lab"
