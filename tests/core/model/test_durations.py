"""Durations: valid and invalid ones, and reading of written ones."""

from datetime import timedelta

import hypothesis
import pydantic
import pytest
from hypothesis import strategies

from workron.core import formats
from workron.core.model import base

_ANY = pydantic.TypeAdapter[timedelta](base.Duration)
_POSITIVE = pydantic.TypeAdapter[timedelta](base.PositiveDuration)

_READ = {
    "90s": timedelta(seconds=90),
    "5m": timedelta(minutes=5),
    "1h30m": timedelta(minutes=90),
    "500ms": timedelta(milliseconds=500),
    "1.5h": timedelta(minutes=90),
    "0.5s": timedelta(milliseconds=500),
    "0s": timedelta(0),
    "1h2m3s4ms": timedelta(hours=1, minutes=2, seconds=3, milliseconds=4),
    "87600h": timedelta(days=3650),
}
_REFUSED = {
    "-1s": "is negative",
    "1e99h": "is not a duration",
    "99999999999999h": "longer than ten years",
    "87600h1ms": "longer than ten years",
    "0.1ms": "finer than a millisecond",
    "5": "is not a duration",
    "": "is not a duration",
    "5 m": "is not a duration",
    "5M": "is not a duration",
    "2d": "is not a duration",
    "30s5m": "is not a duration",
    "1m1m": "is not a duration",
    "1h\n": "is not a duration",
    "٣s": "is not a duration",
    "0" * 60 + "1s": "is not a duration",
}


@pytest.mark.parametrize("text", _READ)
def test_duration_is_read(text: str) -> None:
    assert formats.parse_duration(text) == _READ[text]


@pytest.mark.parametrize("text", _REFUSED)
def test_duration_is_rejected_with_a_message(text: str) -> None:
    with pytest.raises(ValueError, match=_REFUSED[text]):
        formats.parse_duration(text)


@hypothesis.given(strategies.timedeltas(timedelta(0), formats.MAX_DURATION))
def test_duration_is_read_as_the_same_when_it_was_written(value: timedelta) -> None:
    whole = value - value % timedelta(milliseconds=1)
    assert formats.parse_duration(formats.format_duration(whole)) == whole


@pytest.mark.parametrize("value", [5, 1.5, True, None, [], {}])
def test_duration_is_rejected_when_it_is_not_a_text(value: object) -> None:
    with pytest.raises(pydantic.ValidationError, match="write it as 90s"):
        _ANY.validate_python(value)


@pytest.mark.parametrize(
    "value", [timedelta(seconds=-1), timedelta(days=9999), timedelta(microseconds=1)]
)
def test_timedelta_is_rejected_when_it_cannot_be_written(value: timedelta) -> None:
    with pytest.raises(pydantic.ValidationError, match="milliseconds"):
        _ANY.validate_python(value)


@pytest.mark.parametrize("value", [timedelta(0), formats.MAX_DURATION])
def test_timedelta_is_accepted_when_it_can_be_written(value: timedelta) -> None:
    assert _ANY.validate_python(value) is value


def test_limit_is_rejected_when_it_is_zero() -> None:
    assert _ANY.validate_python("0s") == timedelta(0)
    with pytest.raises(pydantic.ValidationError, match="greater than zero"):
        _POSITIVE.validate_python("0s")
