"""The whole operator against an API server that fails on demand: nothing is lost."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry

from tests.controller import harness
from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import EVENT, JOB, WORKFLOW, Json
from tests.controller.harness import Scene
from workron.cli import system_clock
from workron_controller.kube.auth import ApiAccess
from workron_controller.manager import ControllerConfig
from workron_controller.metrics import ControllerMetrics


@pytest.fixture
async def scene(api: FakeApi) -> AsyncIterator[Scene]:
    async with harness.opened(api, "memory:") as scene:
        yield scene


async def test_what_is_there_what_comes_and_what_goes_is_done(
    scene: Scene, access: ApiAccess
) -> None:
    scene.api.add(JOB, "old", spec={"command": "true"})
    async with harness.running(scene, access), harness.worked(scene):
        await scene.until(lambda: scene.phase("old") == "Succeeded")
        await scene.api.watches.wait_until_open(JOB)
        scene.api.add(JOB, "new", spec={"command": "true"})
        scene.api.add(WORKFLOW, "flow", spec={"tasks": [{"name": "a", "command": "true"}]})
        await scene.until(lambda: scene.phase("new") == "Succeeded")
        await scene.until(lambda: scene.phase("flow", WORKFLOW) == "Succeeded")
        scene.api.add(JOB, "held", spec={"command": "true", "suspend": True})
        await scene.until(lambda: scene.phase("held") == "Waiting")
        scene.api.remove(JOB, "held")
        await _ended(scene, "held", "Cancelled")


async def test_each_job_is_written_once_a_change_at_most_and_nothing_else_is(
    scene: Scene, access: ApiAccess
) -> None:
    names = [f"job-{number}" for number in range(30)]
    async with harness.running(scene, access):
        await scene.api.watches.wait_until_open(JOB)
        for name in names:
            scene.api.add(JOB, name, spec={"command": "true"})
        await scene.until(lambda: all(scene.phase(name) for name in names))
        async with harness.worked(scene):
            await scene.until(lambda: {scene.phase(name) for name in names} == {"Succeeded"})
    # One or another is seen while it runs.
    assert set(Counter(scene.status_writes()).values()) <= {1, 2, 3}
    others = {asked.plural for asked in scene.api.requests.writes if asked.subresource != "status"}
    assert others == {"leases"}


async def test_deletion_that_no_watch_tells_of_is_found_by_comparing(
    scene: Scene, access: ApiAccess
) -> None:
    def forget() -> None:
        scene.api.remove(JOB, "lost")
        scene.api.storage.compact()

    config = ControllerConfig(resync_margin=timedelta(0))
    scene.api.add(JOB, "lost", spec={"command": "true", "suspend": True})
    async with harness.running(scene, access, config=config) as operator:
        await scene.until(lambda: scene.phase("lost") == "Waiting")
        await scene.api.watches.wait_until_open(JOB)
        scene.api.faults.run_before(forget, verb="watch", plural="workronjobs")
        scene.api.watches.cut(JOB)
        await scene.until(lambda: scene.api.find(JOB, "lost") is None)
        await operator.resync.run_once()
        await _ended(scene, "lost", "Cancelled")


@pytest.mark.parametrize("code", [409, 429, 500, 503])
async def test_status_that_is_refused_for_now_is_written_later(
    scene: Scene, access: ApiAccess, code: int
) -> None:
    retry_after = 0.1 if code == 429 else None
    scene.api.faults.refuse(code, retry_after=retry_after, subresource="status", times=3)
    scene.api.add(JOB, "a", spec={"command": "true"})
    async with harness.running(scene, access), harness.worked(scene):
        await scene.until(lambda: scene.phase("a") == "Succeeded")


async def test_server_that_is_away_costs_nothing_but_time(scene: Scene, access: ApiAccess) -> None:
    async with harness.running(scene, access), harness.worked(scene):
        scene.api.add(JOB, "before", spec={"command": "true"})
        await scene.until(lambda: scene.phase("before") == "Succeeded")
        fault = scene.api.faults.refuse(503, times=20)
        scene.api.watches.cut(JOB)
        scene.api.add(JOB, "meanwhile", spec={"command": "true"})
        await scene.until(lambda: fault.count >= 3)
        scene.api.faults.clear()
        await scene.until(lambda: scene.phase("meanwhile") == "Succeeded")


async def test_successor_goes_on_where_the_leader_was_cut_off(
    scene: Scene, access: ApiAccess
) -> None:
    async with (
        harness.running(scene, access, "other") as other,
        harness.worked(scene),
    ):
        async with harness.running(scene, access, "one") as one:
            scene.api.add(JOB, "a", spec={"command": "true"})
            await scene.until(lambda: scene.phase("a") == "Succeeded")
            await scene.until(lambda: one.is_leading != other.is_leading)
        scene.api.add(JOB, "b", spec={"command": "true"})
        await scene.until(lambda: scene.phase("b") == "Succeeded")
        await scene.until(lambda: other.is_leading)


@pytest.mark.parametrize(
    "spec",
    [{"command": "true", "argv": ["x"]}, {"command": 5}, {}, {"command": "x", "env": "no list"}],
    ids=["both", "number", "none", "env"],
)
async def test_object_that_cannot_be_read_says_so_and_others_go_on(
    scene: Scene, access: ApiAccess, spec: Json
) -> None:
    scene.api.add(JOB, "bad", spec=spec)
    scene.api.add(JOB, "good", spec={"command": "true"})
    async with harness.running(scene, access), harness.worked(scene):
        await scene.until(lambda: scene.phase("good") == "Succeeded")
        await scene.until(lambda: scene.phase("bad") == "Waiting")
    found = scene.api.find(JOB, "bad")
    assert found is not None
    assert found["status"]["reason"] == "InvalidSpec"


async def test_refusal_is_an_event_that_a_successor_does_not_repeat(
    scene: Scene, access: ApiAccess
) -> None:
    scene.api.add(JOB, "bad", spec={})
    async with harness.running(scene, access, "one"), harness.worked(scene):
        await scene.api.watches.wait_until_open(JOB)
        await scene.api.requests.wait_for(1, verb="create", plural="events", code=200)
    [event] = scene.api.storage.all(EVENT, "default")
    assert (event["reason"], event["involvedObject"]["name"]) == ("InvalidSpec", "bad")
    assert event["message"] == (scene.api.find(JOB, "bad") or {})["status"]["message"]
    async with harness.running(scene, access, "other"), harness.worked(scene):
        await scene.api.watches.wait_until_open(JOB)
        # What comes later is told later: so what was there had its chance.
        scene.api.add(JOB, "worse", spec={})
        await scene.api.requests.wait_for(2, verb="create", plural="events", code=200)
    told = [
        asked.body["involvedObject"]["name"]
        for asked in scene.api.requests.matching(plural="events")
    ]
    assert told == ["bad", "worse"]


async def test_what_it_does_is_measured(scene: Scene, access: ApiAccess) -> None:
    async with harness.running(scene, access) as operator, harness.worked(scene):
        registry = CollectorRegistry()
        ControllerMetrics(operator, registry, system_clock.CLOCK)
        scene.api.faults.refuse(403, times=1_000, subresource="status")
        scene.api.add(JOB, "closed", spec={"command": "true", "suspend": True})
        await scene.until(lambda: _value(registry, "statuses_deferred") == 1)
        # What is refused is held, and not late.
        assert _value(registry, "status_lag_seconds") == 0
        assert _writes(registry, "Forbidden") >= 1
        scene.api.faults.clear()
        scene.api.add(JOB, "open", spec={"command": "true"})
        await scene.until(lambda: scene.phase("open") == "Succeeded")
        assert _writes(registry, "Done") >= 1
        assert _value(registry, "workqueue_lag_seconds") == 0
        assert _value(registry, "missed_changes_total", change="Added") == 0
        assert _value(registry, "events_dropped_total") == 0


def _value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    return registry.get_sample_value(f"workron_controller_{name}", labels) or 0.0


def _writes(registry: CollectorRegistry, outcome: str) -> float:
    about = {"verb": "patch", "resource": "workronjobs/status", "outcome": outcome}
    return _value(registry, "api_writes_total", **about)


@pytest.mark.parametrize("code", [403, 500])
async def test_events_that_cannot_be_written_keep_nothing_else_from_going_on(
    scene: Scene, access: ApiAccess, code: int
) -> None:
    fault = scene.api.faults.refuse(code, times=1_000, plural="events")
    scene.api.add(JOB, "bad", spec={})
    async with harness.running(scene, access), harness.worked(scene):
        await scene.until(lambda: fault.count > 0)
        scene.api.add(JOB, "good", spec={"command": "true"})
        await scene.until(lambda: scene.phase("good") == "Succeeded")
        assert scene.phase("bad") == "Waiting"


async def _ended(scene: Scene, name: str, state: str) -> None:
    async def stands() -> str:
        return {
            head.run.name: str(head.job.state) for head in await scene.store.list_run_summaries()
        }[name]

    await _come(stands, state)


async def _come(ask: Callable[[], Awaitable[str]], wanted: str) -> None:
    while await ask() != wanted:
        await asyncio.sleep(0.01)


async def test_watch_begins_where_the_user_has_no_name(
    scene: Scene, access: ApiAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nameless() -> str:
        raise OSError("no username set in the environment")

    monkeypatch.setattr("getpass.getuser", nameless)
    async with harness.running(scene, access), harness.worked(scene):
        await scene.api.watches.wait_until_open(JOB)
        scene.api.add(JOB, "a", spec={"command": "true"})
        await scene.until(lambda: scene.phase("a") == "Succeeded")


async def test_all_is_listed_anew_when_a_watch_had_to_be_begun_anew(
    scene: Scene, access: ApiAccess
) -> None:
    async with harness.running(scene, access), harness.worked(scene):
        await scene.api.watches.wait_until_open(JOB)
        scene.api.watches.drop("ADDED", "a")
        scene.api.add(JOB, "a", spec={"command": "true"})
        scene.api.watches.fail(JOB, 500)
        await scene.until(lambda: scene.phase("a") == "Succeeded")
