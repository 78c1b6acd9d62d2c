"""Repeated calls: how long the pauses are, and what ends the repetition."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from workron.core.clock import Rng
from workron.retry import RetryAfterError, RetryBackoff, RetryDeadline, retry


class FakeTime:
    """A clock that moves by sleeping only; remembers the pauses."""

    def __init__(self) -> None:
        self.seconds = 100.0
        self.pauses: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.seconds += seconds


class HalfRng(random.Random):
    def random(self) -> float:
        return 0.5


class BusyError(RetryAfterError):
    """An error that may pass."""

    def __init__(self, after: float | None = None) -> None:
        super().__init__("busy")
        self.after = after


class FailingCall:
    """Raises the given errors, one a call, and then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


BACKOFF = RetryBackoff(first=1, longest=5)


def test_pause_doubles_up_to_the_longest_when_failures_repeat() -> None:
    assert [BACKOFF.pause(failures) for failures in (1, 2, 3, 4, 5)] == [1, 2, 4, 5, 5]
    assert BACKOFF.pause(100_000) == 5


def test_pause_is_constant_when_the_first_is_the_longest() -> None:
    assert [RetryBackoff(0.5, 0.5).pause(failures) for failures in (1, 2, 3)] == [0.5] * 3


@pytest.mark.parametrize(("rng", "pause"), [(HalfRng(), 3.0), (None, 4.0)])
def test_pause_is_shortened_by_its_random_share_when_there_is_jitter(
    rng: Rng | None, pause: float
) -> None:
    assert RetryBackoff(first=4, longest=9, jitter=0.5, rng=rng).pause(1) == pause


def test_jitter_stays_within_its_share_when_drawn_often() -> None:
    backoff = RetryBackoff(first=4, longest=9, jitter=0.25, rng=random.Random(1))
    assert all(3 < backoff.pause(1) <= 4 for _ in range(1000))


async def test_result_is_returned_when_a_later_call_succeeds(time: FakeTime) -> None:
    call = FailingCall(BusyError(), BusyError(), BusyError())
    assert await retry(call, errors=BusyError, backoff=BACKOFF, sleep=time.sleep) == "answer"
    assert time.pauses == [1, 2, 4]


async def test_error_is_raised_at_once_when_it_is_of_another_kind(time: FakeTime) -> None:
    call = FailingCall(ValueError("wrong"))
    with pytest.raises(ValueError, match="wrong"):
        await retry(call, errors=BusyError, backoff=BACKOFF, sleep=time.sleep)
    assert (call.calls, time.pauses) == (1, [])


async def test_several_kinds_are_retried_when_a_tuple_is_given(time: FakeTime) -> None:
    call = FailingCall(BusyError(), ValueError())
    kinds = (BusyError, ValueError)
    assert await retry(call, errors=kinds, backoff=BACKOFF, sleep=time.sleep) == "answer"


async def test_last_error_is_raised_when_all_calls_are_used_up(time: FakeTime) -> None:
    call = FailingCall(*(BusyError() for _ in range(9)))
    with pytest.raises(BusyError):
        await retry(
            call, errors=BusyError, backoff=RetryBackoff(1, 1, max_calls=3), sleep=time.sleep
        )
    assert (call.calls, time.pauses) == (3, [1, 1])


async def test_last_error_is_raised_when_the_next_pause_would_pass_the_deadline(
    time: FakeTime,
) -> None:
    call = FailingCall(*(BusyError() for _ in range(9)))
    with pytest.raises(BusyError):
        await retry(
            call,
            errors=BusyError,
            backoff=BACKOFF,
            deadline=RetryDeadline.after(time, 7),
            sleep=time.sleep,
        )
    assert (call.calls, time.pauses) == (4, [1, 2, 4])


async def test_pause_is_longer_when_the_error_asks_for_it(time: FakeTime) -> None:
    call = FailingCall(BusyError(after=30.0), BusyError())
    await retry(call, errors=BusyError, backoff=BACKOFF, sleep=time.sleep)
    assert time.pauses == [31, 2]


async def test_each_error_is_seen_with_its_pause_when_there_is_a_listener(time: FakeTime) -> None:
    seen: list[tuple[str, float]] = []
    await retry(
        FailingCall(BusyError(), BusyError()),
        errors=BusyError,
        backoff=BACKOFF,
        sleep=time.sleep,
        on_retry=lambda error, pause: seen.append((str(error), pause)),
    )
    assert seen == [("busy", 1), ("busy", 2)]


async def test_retry_ends_when_the_listener_raises(time: FakeTime) -> None:
    def give_up(error: Exception, _: float) -> None:
        raise TimeoutError from error

    call = FailingCall(BusyError(), BusyError())
    with pytest.raises(TimeoutError):
        await retry(call, errors=BusyError, backoff=BACKOFF, sleep=time.sleep, on_retry=give_up)
    assert call.calls == 1
