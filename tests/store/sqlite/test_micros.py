"""Times go into a column and come back as they were."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workron.store.sqlite import engine

_TIMES = st.datetimes(timezones=st.just(UTC))


@given(_TIMES)
def test_time_comes_back_as_it_went_in(time: datetime) -> None:
    assert engine.from_micros(engine.to_micros(time)) == time


@given(_TIMES, _TIMES)
def test_order_of_columns_is_the_order_of_times(one: datetime, two: datetime) -> None:
    assert (engine.to_micros(one) < engine.to_micros(two)) == (one < two)


def test_time_is_the_same_in_every_zone() -> None:
    time = datetime(2026, 1, 1, 12, tzinfo=UTC)
    elsewhere = time.astimezone(timezone(timedelta(hours=5)))
    assert engine.to_micros(elsewhere) == engine.to_micros(time)


@pytest.mark.parametrize("seconds", [float("inf"), float("nan")])
def test_duration_is_refused_when_it_is_not_finite(seconds: float) -> None:
    with pytest.raises((OverflowError, ValueError)):
        engine.seconds_to_micros(seconds)
