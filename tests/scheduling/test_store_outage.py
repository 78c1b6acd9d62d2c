"""`StoreOutage` retries during an outage of the store, and reports it once."""

from datetime import timedelta

import pytest

from tests.scheduling.conftest import ManualClock
from workron.core import errors
from workron.scheduling.wait import StoreOutage


class FailingStore:
    """Fails a number of times, `seconds` apart, and then answers."""

    def __init__(self, clock: ManualClock, failures: int, seconds: float = 1.0) -> None:
        self._clock = clock
        self._seconds = seconds
        self.failures = failures
        self.error: errors.StoreError = errors.StoreUnreachableError("db does not answer")

    async def call(self) -> str:
        if self.failures:
            self.failures -= 1
            self._clock.advance(self._seconds)
            raise self.error
        return "answer"


async def test_start_and_end_of_an_outage_are_reported_once(clock: ManualClock) -> None:
    messages: list[str] = []
    assert (
        await StoreOutage(clock, messages.append, pause_seconds=0).retry(
            FailingStore(clock, 20).call
        )
        == "answer"
    )
    assert messages == [
        "the store does not answer; retrying for 1m: db does not answer",
        "the store answers again",
    ]


async def test_outage_is_an_error_when_it_exceeds_its_limit(clock: ManualClock) -> None:
    store = FailingStore(clock, 100)
    with pytest.raises(errors.StoreTimeoutError, match="db does not answer"):
        await StoreOutage(clock, lambda _: None, pause_seconds=0).retry(store.call)
    assert store.failures == 100 - 62


async def test_outage_may_be_longer_when_the_limit_is_higher(clock: ManualClock) -> None:
    store = FailingStore(clock, 200)
    outage = StoreOutage(clock, lambda _: None, timedelta(minutes=2), pause_seconds=0)
    with pytest.raises(errors.StoreTimeoutError):
        await outage.retry(store.call)
    assert (store.failures, outage.is_on) == (200 - 122, True)


async def test_refused_login_is_raised_when_the_store_has_not_answered_before(
    clock: ManualClock,
) -> None:
    store, outage = FailingStore(clock, 100), StoreOutage(clock, lambda _: None, pause_seconds=0)
    store.error = errors.StoreLoginError("no such database")
    with pytest.raises(errors.StoreLoginError):
        await outage.retry(store.call)
    assert store.failures == 99
    store.failures = 0
    await outage.retry(store.call)
    store.failures = 3
    assert await outage.retry(store.call) == "answer"


async def test_limit_counts_again_when_the_store_has_answered(clock: ManualClock) -> None:
    outage = StoreOutage(clock, lambda _: None, pause_seconds=0)
    for _ in range(3):
        assert await outage.retry(FailingStore(clock, 50).call) == "answer"


async def test_error_is_raised_at_once_when_it_is_permanent(clock: ManualClock) -> None:
    store = FailingStore(clock, 100)
    store.error = errors.StoreFullError("no space left")
    with pytest.raises(errors.StoreFullError):
        await StoreOutage(clock, lambda _: None, pause_seconds=0).retry(store.call)
    assert store.failures == 99
