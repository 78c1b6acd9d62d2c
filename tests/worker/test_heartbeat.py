"""When an agent sends heartbeats, and what it does before it may."""

import asyncio
import dataclasses
import random
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from structlog import testing

from workron.core import errors
from workron.core.ids import SessionKey, WorkerId
from workron.store.types import HeartbeatReply, Session
from workron_worker.claims import Claims
from workron_worker.config import AgentConfig, AgentDependencies
from workron_worker.heartbeat import Heartbeat

LEASE_SECONDS = 10.0
SESSION = Session(WorkerId(1), SessionKey(uuid.UUID(int=1)), LEASE_SECONDS, "default", "default")
LONG_SESSION = dataclasses.replace(SESSION, lease_seconds=1e6)


class HeartbeatHarness:
    """Clock, store, executor and agent of one heartbeat, and its calls in order."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.deadline = 0.0
        self.calls: list[str] = []
        self.called = asyncio.Event()
        self.errors: list[Exception] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def heartbeat(self, _: SessionKey) -> HeartbeatReply:
        self._record("heartbeat")
        if self.errors:
            raise self.errors.pop()
        return HeartbeatReply([], is_draining=False, database="x")

    def set_deadline(self, at: float) -> None:
        self.deadline = at

    def lease_may_have_expired(self) -> None:
        self._record("kill")

    def apply_heartbeat(self, *_: Any) -> None:
        self._record("apply")

    def _record(self, call: str) -> None:
        self.calls.append(call)
        self.called.set()

    async def begin(self, heartbeat: Heartbeat, session: Session) -> list[str]:
        """Begin a session at time 0 and return the calls that follow."""
        heartbeat.begin(session, 0.0)
        await self.called.wait()
        return self.calls


@pytest.fixture
def harness() -> HeartbeatHarness:
    return HeartbeatHarness()


@pytest.fixture
async def heartbeat(harness: HeartbeatHarness) -> AsyncIterator[Heartbeat]:
    """A heartbeat that would pause for an hour after each call."""
    fakes = {"store": harness, "executor": harness, "slots": None}
    dependencies = AgentDependencies(clock=harness, rng=random.Random(), **cast("Any", fakes))
    config = AgentConfig(heartbeat=timedelta(hours=1), lease_margin=timedelta(seconds=4))
    heartbeat = Heartbeat(dependencies, config, Claims(random.Random()), cast("Any", harness))
    task = asyncio.create_task(heartbeat.run())
    # It pauses already when its session begins.
    await asyncio.sleep(0)
    yield heartbeat
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_first_heartbeat_of_a_session_is_sent_at_once(
    heartbeat: Heartbeat, harness: HeartbeatHarness
) -> None:
    assert (await harness.begin(heartbeat, LONG_SESSION))[0] == "heartbeat"


async def test_pause_is_at_most_a_quarter_of_the_lease(
    heartbeat: Heartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def sleep(seconds: float) -> None:
        pause.set_result(seconds)
        await asyncio.Event().wait()

    monkeypatch.setattr(heartbeat, "_sleep", sleep)
    heartbeat.begin(SESSION, 0.0)
    assert await pause == LEASE_SECONDS / 4


async def test_nothing_is_killed_before_the_deadline(
    heartbeat: Heartbeat, harness: HeartbeatHarness
) -> None:
    harness.seconds = 5.9
    assert (await harness.begin(heartbeat, SESSION))[0] == "heartbeat"


async def test_all_is_killed_before_the_heartbeat_when_the_deadline_has_passed(
    heartbeat: Heartbeat, harness: HeartbeatHarness
) -> None:
    harness.seconds = 6.0
    assert (await harness.begin(heartbeat, SESSION))[:2] == ["kill", "heartbeat"]


async def test_heartbeat_is_repeated_soon_when_it_was_not_answered(
    heartbeat: Heartbeat, harness: HeartbeatHarness
) -> None:
    harness.errors = [errors.StoreUnreachableError("unavailable")]
    await harness.begin(heartbeat, LONG_SESSION)
    while harness.calls != ["heartbeat", "heartbeat", "apply"]:
        harness.called.clear()
        await harness.called.wait()


async def test_warning_names_the_timeout_when_a_heartbeat_was_not_answered_in_time(
    heartbeat: Heartbeat, harness: HeartbeatHarness
) -> None:
    harness.errors = [TimeoutError()]
    with testing.capture_logs() as events:
        await harness.begin(heartbeat, SESSION)
    [missed] = [one for one in events if one["event"] == "heartbeat not answered"]
    assert missed["error"] == "no answer within 2.5 s"


async def test_executor_gets_the_deadline_when_a_session_begins(
    heartbeat: Heartbeat, harness: HeartbeatHarness
) -> None:
    heartbeat.begin(SESSION, 100.0)
    assert harness.deadline == 109.0


async def test_answered_heartbeat_extends_the_deadline(
    heartbeat: Heartbeat, harness: HeartbeatHarness
) -> None:
    harness.seconds = 5.0
    assert await harness.begin(heartbeat, SESSION) == ["heartbeat", "apply"]
    assert harness.deadline == 14.0


async def test_deadline_is_not_extended_when_a_heartbeat_was_not_answered(
    heartbeat: Heartbeat, harness: HeartbeatHarness
) -> None:
    harness.seconds = 5.0
    harness.errors = [errors.StoreUnreachableError("unavailable")]
    await harness.begin(heartbeat, SESSION)
    assert harness.deadline == 9.0


async def test_margin_is_half_of_the_lease_when_the_lease_is_short(
    heartbeat: Heartbeat, harness: HeartbeatHarness
) -> None:
    heartbeat.begin(dataclasses.replace(SESSION, lease_seconds=4.0), 0.0)
    assert harness.deadline == 3.5
