"""When an agent beats, and what it does before it may."""

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

LEASE = 10.0
SESSION = Session(WorkerId(1), SessionKey(uuid.UUID(int=1)), LEASE, "default", "default")


class Scene:
    """The clock, the door and the body of one pulse, and what happened in order."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.held_until = 0.0
        self.events: list[str] = []
        self.happened = asyncio.Event()
        self.errors: list[Exception] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def heartbeat(self, _: SessionKey) -> HeartbeatReply:
        self._note("beat")
        if self.errors:
            raise self.errors.pop()
        return HeartbeatReply([], is_draining=False, database="x")

    def set_deadline(self, at: float) -> None:
        self.held_until = at

    def lease_may_have_expired(self) -> None:
        self._note("cut off")

    def apply_heartbeat(self, _: Any) -> None:
        self._note("obey")

    def _note(self, event: str) -> None:
        self.events.append(event)
        self.happened.set()


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
async def pulse(scene: Scene) -> AsyncIterator[Heartbeat]:
    """A pulse that would rest for an hour after each beat."""
    ports = {"store": scene, "executor": scene, "slots": None}
    dependencies = AgentDependencies(clock=scene, rng=random.Random(), **cast("Any", ports))
    config = AgentConfig(heartbeat=timedelta(hours=1), lease_margin=timedelta(seconds=4))
    pulse = Heartbeat(dependencies, config, Claims(random.Random()), cast("Any", scene))
    task = asyncio.create_task(pulse.run())
    # It rests already when it hears of its session.
    await asyncio.sleep(0)
    yield pulse
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _let_it(pulse: Heartbeat, scene: Scene, session: Session, sent_at: float) -> list[str]:
    pulse.begin(session, sent_at)
    await scene.happened.wait()
    return scene.events


async def test_first_beat_of_a_session_is_sent_at_once(pulse: Heartbeat, scene: Scene) -> None:
    long = dataclasses.replace(SESSION, lease_seconds=1e6)
    assert (await _let_it(pulse, scene, long, 0.0))[0] == "beat"


async def test_no_rest_is_longer_than_a_quarter_of_a_lease(
    pulse: Heartbeat, monkeypatch: pytest.MonkeyPatch
) -> None:
    rested: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def rest(seconds: float) -> None:
        rested.set_result(seconds)
        await asyncio.Event().wait()

    monkeypatch.setattr(pulse, "_sleep", rest)
    pulse.begin(SESSION, 0.0)
    assert await rested == LEASE / 4


async def test_nothing_is_cut_off_while_the_deadline_is_ahead(
    pulse: Heartbeat, scene: Scene
) -> None:
    scene.seconds = 5.9
    assert (await _let_it(pulse, scene, SESSION, 0.0))[0] == "beat"


async def test_all_is_cut_off_before_a_beat_that_comes_past_the_deadline(
    pulse: Heartbeat, scene: Scene
) -> None:
    scene.seconds = 6.0
    assert (await _let_it(pulse, scene, SESSION, 0.0))[:2] == ["cut off", "beat"]


async def test_beat_that_was_not_answered_is_followed_by_another_soon(
    pulse: Heartbeat, scene: Scene
) -> None:
    scene.errors = [errors.StoreUnreachableError("away")]
    long = dataclasses.replace(SESSION, lease_seconds=1e6)
    await _let_it(pulse, scene, long, 0.0)
    while scene.events != ["beat", "beat", "obey"]:
        scene.happened.clear()
        await scene.happened.wait()


async def test_beat_that_was_not_answered_in_time_is_told_with_that_time(
    pulse: Heartbeat, scene: Scene
) -> None:
    scene.errors = [TimeoutError()]
    with testing.capture_logs() as lines:
        await _let_it(pulse, scene, SESSION, 0.0)
    [missed] = [line for line in lines if line["event"] == "heartbeat not answered"]
    assert missed["error"] == "no answer within 2.5 s"


async def test_executor_is_told_how_long_all_may_live_before_the_first_claim_can_come(
    pulse: Heartbeat, scene: Scene
) -> None:
    pulse.begin(SESSION, 100.0)
    assert scene.held_until == 109.0


async def test_each_answered_beat_lets_live_longer(pulse: Heartbeat, scene: Scene) -> None:
    scene.seconds = 5.0
    assert await _let_it(pulse, scene, SESSION, 0.0) == ["beat", "obey"]
    assert scene.held_until == 14.0


async def test_beat_that_was_not_answered_lets_live_no_longer(
    pulse: Heartbeat, scene: Scene
) -> None:
    scene.seconds = 5.0
    scene.errors = [errors.StoreUnreachableError("away")]
    await _let_it(pulse, scene, SESSION, 0.0)
    assert scene.held_until == 9.0


async def test_lease_that_is_short_leaves_a_part_of_itself_for_the_kill(
    pulse: Heartbeat, scene: Scene
) -> None:
    pulse.begin(dataclasses.replace(SESSION, lease_seconds=4.0), 0.0)
    assert scene.held_until == 3.5
