"""Times go into a column and come back as they were."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workron.store.sqlite import micros

_TIMES = st.datetimes(timezones=st.just(UTC))


@given(_TIMES)
def test_time_comes_back_as_it_went_in(time: datetime) -> None:
    assert micros.to_time(micros.of_time(time)) == time


@given(_TIMES, _TIMES)
def test_order_of_columns_is_the_order_of_times(one: datetime, two: datetime) -> None:
    assert (micros.of_time(one) < micros.of_time(two)) == (one < two)


def test_time_is_the_same_in_every_zone() -> None:
    time = datetime(2026, 1, 1, 12, tzinfo=UTC)
    elsewhere = time.astimezone(timezone(timedelta(hours=5)))
    assert micros.of_time(elsewhere) == micros.of_time(time)


def test_null_stays_none() -> None:
    assert micros.to_time(None) is None


@pytest.mark.parametrize("seconds", [float("inf"), float("nan")])
def test_duration_is_refused_when_it_is_not_finite(seconds: float) -> None:
    with pytest.raises((OverflowError, ValueError)):
        micros.of_seconds(seconds)
