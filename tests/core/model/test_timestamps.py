"""Times: RFC 3339 with a zone, kept in UTC."""

from datetime import UTC, datetime

import hypothesis
import pydantic
import pytest
from hypothesis import strategies

from workron.core.model import base

_ANY = pydantic.TypeAdapter[datetime](base.Timestamp)

_READ = {
    "2026-01-31T08:00:00Z": datetime(2026, 1, 31, 8, tzinfo=UTC),
    "2026-01-31T08:00:00+02:00": datetime(2026, 1, 31, 6, tzinfo=UTC),
    "2026-01-31T08:00:00.25Z": datetime(2026, 1, 31, 8, 0, 0, 250_000, tzinfo=UTC),
    "2026-01-31T08:00:00.123456789Z": datetime(2026, 1, 31, 8, 0, 0, 123_456, tzinfo=UTC),
}
_REFUSED = {
    "2026-01-31": "date and zone",
    "2026-01-31T08:00:00": "date and zone",
    "2026-01-31 08:00:00Z": "date and zone",
    "2026-01-31T08:00Z": "date and zone",
    "2026-02-30T08:00:00Z": "not on the calendar",
    "2026-01-31T24:00:01Z": "not on the calendar",
    "2026-01-31T08:00:00+25:00": "date and zone",
    "2026-01-31t08:00:00z": "date and zone",
    "9999-12-31T23:59:59-01:00": "not on the calendar",
    "0001-01-01T00:00:00+01:00": "not on the calendar",
    "tomorrow": "date and zone",
}


@pytest.mark.parametrize("text", _READ)
def test_time_is_read_into_utc(text: str) -> None:
    assert base.parse_timestamp(text) == _READ[text]
    assert base.parse_timestamp(text).tzinfo is UTC


@pytest.mark.parametrize("text", _REFUSED)
def test_time_is_rejected_with_a_message(text: str) -> None:
    with pytest.raises(ValueError, match=_REFUSED[text]):
        base.parse_timestamp(text)


@hypothesis.given(strategies.datetimes(timezones=strategies.just(UTC)))
def test_time_is_read_as_the_same_when_it_was_written(value: datetime) -> None:
    assert base.parse_timestamp(base.format_timestamp(value)) == value


def test_time_is_rejected_when_it_has_no_zone_or_is_not_a_text() -> None:
    naive = datetime(2026, 1, 31, tzinfo=UTC).replace(tzinfo=None)
    for value in (naive, 5, None):
        with pytest.raises(pydantic.ValidationError, match="date and zone"):
            _ANY.validate_python(value)
