"""Times and durations as microseconds."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workron.store.sqlite import engine

_TIMES = st.datetimes(timezones=st.just(UTC))


@given(_TIMES)
def test_time_survives_a_round_trip(time: datetime) -> None:
    assert engine.from_micros(engine.to_micros(time)) == time


@given(_TIMES, _TIMES)
def test_microseconds_have_the_order_of_times(one: datetime, two: datetime) -> None:
    assert (engine.to_micros(one) < engine.to_micros(two)) == (one < two)


def test_microseconds_do_not_depend_on_the_time_zone() -> None:
    time = datetime(2026, 1, 1, 12, tzinfo=UTC)
    elsewhere = time.astimezone(timezone(timedelta(hours=5)))
    assert engine.to_micros(elsewhere) == engine.to_micros(time)


@pytest.mark.parametrize("seconds", [float("inf"), float("nan")])
def test_duration_is_rejected_when_it_is_not_finite(seconds: float) -> None:
    with pytest.raises((OverflowError, ValueError)):
        engine.seconds_to_micros(seconds)
