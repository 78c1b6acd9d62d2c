"""The recorder writes Events slowly and once, and never blocks its callers."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from tests.controller import counters
from tests.controller.fake_api.fake import FakeApi
from tests.controller.fake_api.kinds import EVENT
from tests.controller.manual_clock import ManualClock
from workron_controller.kube import events
from workron_controller.kube.client import ApiClient, RetryingCalls
from workron_controller.kube.conditions import StatusReason
from workron_controller.kube.events import EventRecorder, InvolvedObject, KubernetesEvent

_numbers = itertools.count()


def _event(key: str = "", namespace: str = "lab") -> KubernetesEvent:
    involved = InvolvedObject("Job", namespace, "job", "some-uid")
    return KubernetesEvent(involved, StatusReason("InvalidSpec", "no"), key or str(next(_numbers)))


@pytest.fixture
def recorder(server: ApiClient, retrying: RetryingCalls, time: ManualClock) -> EventRecorder:
    return EventRecorder(server, retrying, time, time.sleep)


@contextlib.asynccontextmanager
async def _running(recorder: EventRecorder) -> AsyncIterator[None]:
    task = asyncio.create_task(recorder.run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.wait([task])


def _events(api: FakeApi) -> int:
    return len(api.storage.all(EVENT, None))


async def _pass_pauses(time: ManualClock, pauses: int) -> None:
    """Wait for this number of pauses to begin and to end."""
    for _ in range(pauses):
        await time.wait_for_sleepers(1)
        time.advance(5)


async def test_recorded_event_is_created(api: FakeApi, recorder: EventRecorder) -> None:
    async with _running(recorder):
        recorder.record(_event())
        await api.requests.wait_for(1, verb="create", plural="events", code=200)
    [event] = api.storage.all(EVENT, "lab")
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "InvalidSpec", "no")


async def test_same_event_is_written_once_an_hour(
    api: FakeApi, recorder: EventRecorder, time: ManualClock
) -> None:
    async with _running(recorder):
        for hour in (1, 2):
            for _ in range(5):
                recorder.record(_event("always"))
            recorder.record(_event())
            await api.requests.wait_for(2 * hour - 1, verb="create", plural="events")
            await time.wait_for_sleepers(1)
            time.advance(1)
            await api.requests.wait_for(2 * hour, verb="create", plural="events")
            await time.wait_for_sleepers(1)
            time.advance(3600)
    assert len(api.requests.matching(verb="create", plural="events")) == 4


async def test_conflict_is_not_an_error_when_another_leader_has_written_the_event(
    api: FakeApi,
    recorder: EventRecorder,
    server: ApiClient,
    retrying: RetryingCalls,
    time: ManualClock,
) -> None:
    with capture_logs() as logs:
        for one in (recorder, EventRecorder(server, retrying, time, time.sleep)):
            async with _running(one):
                one.record(_event("always"))
                await time.wait_for_sleepers(1)
    assert [request.code for request in api.requests.matching(plural="events")] == [200, 409]
    assert (_events(api), logs, counters.value(recorder.dropped)) == (1, [], 0)


async def test_five_events_are_written_per_second(
    api: FakeApi, recorder: EventRecorder, time: ManualClock
) -> None:
    for _ in range(20):
        recorder.record(_event())
    async with _running(recorder):
        await time.wait_for_sleepers(1)
        await time.run_for(1.9)
    assert _events(api) == 10


async def test_event_is_dropped_and_counted_when_the_queue_is_full(recorder: EventRecorder) -> None:
    for _ in range(events.MAX_PENDING_EVENTS + 3):
        recorder.record(_event())
    recorder.record(_event("again"))
    assert counters.value(recorder.dropped) == 4


async def test_repeated_event_is_not_dropped_when_the_queue_is_full(
    recorder: EventRecorder,
) -> None:
    recorder.record(_event("always"))
    for _ in range(events.MAX_PENDING_EVENTS):
        recorder.record(_event())
    recorder.record(_event("always"))
    assert counters.value(recorder.dropped) == 1


async def test_error_is_logged_once_when_events_are_forbidden(
    api: FakeApi, recorder: EventRecorder, time: ManualClock
) -> None:
    for _ in range(3):
        api.faults.refuse(403, verb="create", plural="events")
        recorder.record(_event())
    recorder.record(_event())
    with capture_logs() as logs:
        async with _running(recorder):
            await _pass_pauses(time, 4)
    assert [one["event"] for one in logs] == ["event not written"]
    assert "verb create on events" in logs[0]["error"]
    assert (_events(api), counters.value(recorder.dropped)) == (1, 3)


async def test_event_is_written_when_the_server_answers_again(
    api: FakeApi, recorder: EventRecorder, time: ManualClock
) -> None:
    api.faults.refuse(503, verb="create", plural="events", times=2)
    recorder.record(_event())
    async with _running(recorder):
        await _pass_pauses(time, 3)
    assert (_events(api), counters.value(recorder.dropped)) == (1, 0)


async def test_pending_events_are_dropped_when_the_leadership_is_lost(
    api: FakeApi, recorder: EventRecorder, time: ManualClock
) -> None:
    for _ in range(5):
        recorder.record(_event())
    async with _running(recorder):
        await time.wait_for_sleepers(1)
    async with _running(recorder):
        recorder.record(_event("later"))
        await time.wait_for_sleepers(1)
    assert api.find(EVENT, _event("later").name, "lab") is not None
    assert _events(api) == 2


async def test_oldest_event_is_forgotten_when_too_many_are_remembered(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, time: ManualClock
) -> None:
    recorder = EventRecorder(server, retrying, time, time.sleep, max_remembered=3)
    for key in ("first", "second", "third", "fourth", "fourth", "first"):
        recorder.record(_event(key))
    async with _running(recorder):
        await _pass_pauses(time, 5)
    assert [request.code for request in api.requests.matching(plural="events")] == [200] * 4 + [409]
