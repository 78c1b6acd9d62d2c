"""A store that is away for a while is borne, and spoken of once."""

from datetime import timedelta

import pytest

from tests.scheduling.conftest import HandClock
from workron.core import errors
from workron.scheduling.wait import StoreOutage


class Door:
    """Fails so often, so many seconds apart, and then answers."""

    def __init__(self, clock: HandClock, times: int, seconds: float = 1.0) -> None:
        self._clock = clock
        self._seconds = seconds
        self.times = times
        self.error: errors.StoreError = errors.StoreUnreachableError("db does not answer")

    async def ask(self) -> str:
        if self.times:
            self.times -= 1
            self._clock.turn(self._seconds)
            raise self.error
        return "answer"


async def test_start_and_end_of_an_outage_are_reported_once(clock: HandClock) -> None:
    told: list[str] = []
    assert (
        await StoreOutage(clock, told.append, pause_seconds=0).retry(Door(clock, 20).ask)
        == "answer"
    )
    assert told == [
        "the store does not answer; retrying for 1m: db does not answer",
        "the store answers again",
    ]


async def test_outage_is_an_error_when_it_exceeds_its_limit(clock: HandClock) -> None:
    door = Door(clock, 100)
    with pytest.raises(errors.StoreTimeoutError, match="db does not answer"):
        await StoreOutage(clock, lambda _: None, pause_seconds=0).retry(door.ask)
    assert door.times == 100 - 62


async def test_outage_may_be_longer_when_the_limit_is_higher(clock: HandClock) -> None:
    door = Door(clock, 200)
    patient = StoreOutage(clock, lambda _: None, timedelta(minutes=2), pause_seconds=0)
    with pytest.raises(errors.StoreTimeoutError):
        await patient.retry(door.ask)
    assert (door.times, patient.is_on) == (200 - 122, True)


async def test_refused_login_is_raised_when_the_store_has_not_answered_before(
    clock: HandClock,
) -> None:
    door, patient = Door(clock, 100), StoreOutage(clock, lambda _: None, pause_seconds=0)
    door.error = errors.StoreLoginError("no such database")
    with pytest.raises(errors.StoreLoginError):
        await patient.retry(door.ask)
    assert door.times == 99
    door.times = 0
    await patient.retry(door.ask)
    door.times = 3
    assert await patient.retry(door.ask) == "answer"


async def test_limit_counts_again_when_the_store_has_answered(clock: HandClock) -> None:
    both = StoreOutage(clock, lambda _: None, pause_seconds=0)
    for _ in range(3):
        assert await both.retry(Door(clock, 50).ask) == "answer"


async def test_error_is_raised_at_once_when_it_is_permanent(clock: HandClock) -> None:
    door = Door(clock, 100)
    door.error = errors.StoreFullError("no space left")
    with pytest.raises(errors.StoreFullError):
        await StoreOutage(clock, lambda _: None, pause_seconds=0).retry(door.ask)
    assert door.times == 99
