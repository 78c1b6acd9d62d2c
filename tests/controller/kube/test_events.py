"""The recorder: Events are written slowly, once, and in nobody's way."""

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


def _notice(occasion: str = "", namespace: str = "lab") -> KubernetesEvent:
    subject = InvolvedObject("Job", namespace, "job", "some-uid")
    return KubernetesEvent(
        subject, StatusReason("InvalidSpec", "no"), occasion or str(next(_numbers))
    )


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


async def _pass(time: ManualClock, pauses: int) -> None:
    """Let so many pauses begin and be over."""
    for _ in range(pauses):
        await time.asleep(1)
        time.turn(5)


async def test_notice_becomes_an_event(api: FakeApi, recorder: EventRecorder) -> None:
    async with _running(recorder):
        recorder.record(_notice())
        await api.requests.wait_for(1, verb="create", plural="events", code=200)
    [event] = api.storage.all(EVENT, "lab")
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "InvalidSpec", "no")


async def test_same_notice_is_told_once_an_hour(
    api: FakeApi, recorder: EventRecorder, time: ManualClock
) -> None:
    async with _running(recorder):
        for hour in (1, 2):
            for _ in range(5):
                recorder.record(_notice("always"))
            recorder.record(_notice())
            await api.requests.wait_for(2 * hour - 1, verb="create", plural="events")
            await time.asleep(1)
            time.turn(1)
            await api.requests.wait_for(2 * hour, verb="create", plural="events")
            await time.asleep(1)
            time.turn(3600)
    assert len(api.requests.matching(verb="create", plural="events")) == 4


async def test_what_another_leader_has_told_is_none_the_worse(
    api: FakeApi,
    recorder: EventRecorder,
    server: ApiClient,
    retrying: RetryingCalls,
    time: ManualClock,
) -> None:
    with capture_logs() as logs:
        for one in (recorder, EventRecorder(server, retrying, time, time.sleep)):
            async with _running(one):
                one.record(_notice("always"))
                await time.asleep(1)
    assert [asked.code for asked in api.requests.matching(plural="events")] == [200, 409]
    assert (_events(api), logs, counters.value(recorder.dropped)) == (1, [], 0)


async def test_no_more_than_five_are_told_a_second(
    api: FakeApi, recorder: EventRecorder, time: ManualClock
) -> None:
    for _ in range(20):
        recorder.record(_notice())
    async with _running(recorder):
        await time.asleep(1)
        await time.go_by(1.9)
    assert _events(api) == 10


async def test_what_finds_no_room_is_left_out_and_counted(recorder: EventRecorder) -> None:
    for _ in range(events.MAX_PENDING_EVENTS + 3):
        recorder.record(_notice())
    recorder.record(_notice("again"))
    assert counters.value(recorder.dropped) == 4


async def test_what_was_told_finds_no_room_for_want_of_none(recorder: EventRecorder) -> None:
    recorder.record(_notice("always"))
    for _ in range(events.MAX_PENDING_EVENTS):
        recorder.record(_notice())
    recorder.record(_notice("always"))
    assert counters.value(recorder.dropped) == 1


async def test_event_that_is_forbidden_is_logged_once_and_others_go_on(
    api: FakeApi, recorder: EventRecorder, time: ManualClock
) -> None:
    for _ in range(3):
        api.faults.refuse(403, verb="create", plural="events")
        recorder.record(_notice())
    recorder.record(_notice())
    with capture_logs() as logs:
        async with _running(recorder):
            await _pass(time, 4)
    assert [one["event"] for one in logs] == ["event not written"]
    assert "verb create on events" in logs[0]["error"]
    assert (_events(api), counters.value(recorder.dropped)) == (1, 3)


async def test_server_that_is_away_for_a_while_is_waited_for(
    api: FakeApi, recorder: EventRecorder, time: ManualClock
) -> None:
    api.faults.refuse(503, verb="create", plural="events", times=2)
    recorder.record(_notice())
    async with _running(recorder):
        await _pass(time, 3)
    assert (_events(api), counters.value(recorder.dropped)) == (1, 0)


async def test_who_leads_no_more_tells_nothing_of_what_was_left(
    api: FakeApi, recorder: EventRecorder, time: ManualClock
) -> None:
    for _ in range(5):
        recorder.record(_notice())
    async with _running(recorder):
        await time.asleep(1)
    async with _running(recorder):
        recorder.record(_notice("later"))
        await time.asleep(1)
    assert api.find(EVENT, _notice("later").name, "lab") is not None
    assert _events(api) == 2


async def test_only_so_much_is_remembered(
    api: FakeApi, server: ApiClient, retrying: RetryingCalls, time: ManualClock
) -> None:
    recorder = EventRecorder(server, retrying, time, time.sleep, max_remembered=3)
    for occasion in ("first", "second", "third", "fourth", "fourth", "first"):
        recorder.record(_notice(occasion))
    async with _running(recorder):
        await _pass(time, 5)
    assert [asked.code for asked in api.requests.matching(plural="events")] == [200] * 4 + [409]
