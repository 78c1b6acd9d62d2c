"""The whole controller against an API server that fails on demand."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry

from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import EVENT, JOB, WORKFLOW, Json
from tests.controller.harness import ControllerHarness, opened, running, working
from workron.cli import system_clock
from workron_controller.kube.auth import ApiAccess
from workron_controller.manager import ControllerConfig
from workron_controller.metrics import ControllerMetrics


@pytest.fixture
async def harness(api: FakeApi) -> AsyncIterator[ControllerHarness]:
    async with opened(api, "memory:") as harness:
        yield harness


async def test_existing_new_and_deleted_objects_are_handled(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    harness.api.add(JOB, "old", spec={"command": "true"})
    async with running(harness, access), working(harness):
        await harness.wait_until(lambda: harness.phase("old") == "Succeeded")
        await harness.api.watches.wait_until_open(JOB)
        harness.api.add(JOB, "new", spec={"command": "true"})
        harness.api.add(WORKFLOW, "flow", spec={"tasks": [{"name": "a", "command": "true"}]})
        await harness.wait_until(lambda: harness.phase("new") == "Succeeded")
        await harness.wait_until(lambda: harness.phase("flow", WORKFLOW) == "Succeeded")
        harness.api.add(JOB, "held", spec={"command": "true", "suspend": True})
        await harness.wait_until(lambda: harness.phase("held") == "Waiting")
        harness.api.remove(JOB, "held")
        await _ended(harness, "held", "Cancelled")


async def test_only_statuses_are_written_and_at_most_once_a_change(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    names = [f"job-{number}" for number in range(30)]
    async with running(harness, access):
        await harness.api.watches.wait_until_open(JOB)
        for name in names:
            harness.api.add(JOB, name, spec={"command": "true"})
        await harness.wait_until(lambda: all(harness.phase(name) for name in names))
        async with working(harness):
            await harness.wait_until(
                lambda: {harness.phase(name) for name in names} == {"Succeeded"}
            )
    # Some are observed while they run.
    assert set(Counter(harness.status_writes()).values()) <= {1, 2, 3}
    others = {
        request.plural for request in harness.api.requests.writes if request.subresource != "status"
    }
    assert others == {"leases"}


async def test_deletion_is_found_by_a_resync_when_no_watch_reports_it(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    def forget() -> None:
        harness.api.remove(JOB, "lost")
        harness.api.storage.compact()

    config = ControllerConfig(resync_margin=timedelta(0))
    harness.api.add(JOB, "lost", spec={"command": "true", "suspend": True})
    async with running(harness, access, config=config) as controller:
        await harness.wait_until(lambda: harness.phase("lost") == "Waiting")
        await harness.api.watches.wait_until_open(JOB)
        harness.api.faults.run_before(forget, verb="watch", plural="workronjobs")
        harness.api.watches.cut(JOB)
        await harness.wait_until(lambda: harness.api.find(JOB, "lost") is None)
        await controller.resync.run_once()
        await _ended(harness, "lost", "Cancelled")


@pytest.mark.parametrize("code", [409, 429, 500, 503])
async def test_status_is_written_later_when_the_server_refuses_it_first(
    harness: ControllerHarness, access: ApiAccess, code: int
) -> None:
    retry_after = 0.1 if code == 429 else None
    harness.api.faults.refuse(code, retry_after=retry_after, subresource="status", times=3)
    harness.api.add(JOB, "a", spec={"command": "true"})
    config = ControllerConfig(status_retry_seconds=0.02)
    async with running(harness, access, config=config), working(harness):
        await harness.wait_until(lambda: harness.phase("a") == "Succeeded")


async def test_objects_are_handled_when_the_server_answers_again(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    async with running(harness, access), working(harness):
        harness.api.add(JOB, "before", spec={"command": "true"})
        await harness.wait_until(lambda: harness.phase("before") == "Succeeded")
        fault = harness.api.faults.refuse(503, times=20)
        harness.api.watches.cut(JOB)
        harness.api.add(JOB, "meanwhile", spec={"command": "true"})
        await harness.wait_until(lambda: fault.count >= 3)
        harness.api.faults.clear()
        await harness.wait_until(lambda: harness.phase("meanwhile") == "Succeeded")


async def test_successor_continues_when_the_leader_stops(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    async with (
        running(harness, access, "other") as other,
        working(harness),
    ):
        async with running(harness, access, "one") as one:
            harness.api.add(JOB, "a", spec={"command": "true"})
            await harness.wait_until(lambda: harness.phase("a") == "Succeeded")
            await harness.wait_until(lambda: one.is_leading != other.is_leading)
        harness.api.add(JOB, "b", spec={"command": "true"})
        await harness.wait_until(lambda: harness.phase("b") == "Succeeded")
        await harness.wait_until(lambda: other.is_leading)


@pytest.mark.parametrize(
    "spec",
    [{"command": "true", "argv": ["x"]}, {"command": 5}, {}, {"command": "x", "env": "no list"}],
    ids=["both", "number", "none", "env"],
)
async def test_invalid_object_is_reported_and_others_run(
    harness: ControllerHarness, access: ApiAccess, spec: Json
) -> None:
    harness.api.add(JOB, "bad", spec=spec)
    harness.api.add(JOB, "good", spec={"command": "true"})
    async with running(harness, access), working(harness):
        await harness.wait_until(lambda: harness.phase("good") == "Succeeded")
        await harness.wait_until(lambda: harness.phase("bad") == "Waiting")
    found = harness.api.find(JOB, "bad")
    assert found is not None
    assert found["status"]["reason"] == "InvalidSpec"


async def test_rejection_is_an_event_that_a_successor_does_not_repeat(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    harness.api.add(JOB, "bad", spec={})
    async with running(harness, access, "one"), working(harness):
        await harness.api.watches.wait_until_open(JOB)
        await harness.api.requests.wait_for(1, verb="create", plural="events", code=200)
    [event] = harness.api.storage.all(EVENT, "default")
    assert (event["reason"], event["involvedObject"]["name"]) == ("InvalidSpec", "bad")
    assert event["message"] == (harness.api.find(JOB, "bad") or {})["status"]["message"]
    async with running(harness, access, "other"), working(harness):
        await harness.api.watches.wait_until_open(JOB)
        # Events are written in order, so those of existing objects come first.
        harness.api.add(JOB, "worse", spec={})
        await harness.api.requests.wait_for(2, verb="create", plural="events", code=200)
    names = [
        request.body["involvedObject"]["name"]
        for request in harness.api.requests.matching(plural="events")
    ]
    assert names == ["bad", "worse"]


async def test_metrics_count_what_the_controller_does(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    async with running(harness, access) as controller, working(harness):
        registry = CollectorRegistry()
        ControllerMetrics(controller, registry, system_clock.CLOCK)
        harness.api.faults.refuse(403, times=1_000, subresource="status")
        harness.api.add(JOB, "closed", spec={"command": "true", "suspend": True})
        await harness.wait_until(lambda: _value(registry, "statuses_deferred") == 1)
        # A deferred status does not count as late.
        assert _value(registry, "status_lag_seconds") == 0
        assert _writes(registry, "Forbidden") >= 1
        harness.api.faults.clear()
        harness.api.add(JOB, "open", spec={"command": "true"})
        await harness.wait_until(lambda: harness.phase("open") == "Succeeded")
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
async def test_jobs_run_when_events_cannot_be_written(
    harness: ControllerHarness, access: ApiAccess, code: int
) -> None:
    fault = harness.api.faults.refuse(code, times=1_000, plural="events")
    harness.api.add(JOB, "bad", spec={})
    async with running(harness, access), working(harness):
        await harness.wait_until(lambda: fault.count > 0)
        harness.api.add(JOB, "good", spec={"command": "true"})
        await harness.wait_until(lambda: harness.phase("good") == "Succeeded")
        assert harness.phase("bad") == "Waiting"


async def _ended(harness: ControllerHarness, name: str, state: str) -> None:
    async def state_of_run() -> str:
        return {
            head.run.name: str(head.job.state) for head in await harness.store.list_run_summaries()
        }[name]

    await _wait_until_equal(state_of_run, state)


async def _wait_until_equal(read: Callable[[], Awaitable[str]], wanted: str) -> None:
    while await read() != wanted:
        await asyncio.sleep(0.01)


async def test_watch_starts_when_the_user_has_no_name(
    harness: ControllerHarness, access: ApiAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nameless() -> str:
        raise OSError("no username set in the environment")

    monkeypatch.setattr("getpass.getuser", nameless)
    async with running(harness, access), working(harness):
        await harness.api.watches.wait_until_open(JOB)
        harness.api.add(JOB, "a", spec={"command": "true"})
        await harness.wait_until(lambda: harness.phase("a") == "Succeeded")


async def test_objects_are_listed_again_when_a_watch_was_restarted(
    harness: ControllerHarness, access: ApiAccess
) -> None:
    async with running(harness, access), working(harness):
        await harness.api.watches.wait_until_open(JOB)
        harness.api.watches.drop("ADDED", "a")
        harness.api.add(JOB, "a", spec={"command": "true"})
        harness.api.watches.fail(JOB, 500)
        await harness.wait_until(lambda: harness.phase("a") == "Succeeded")
