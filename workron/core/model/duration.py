"""Fields that are durations: what `core.duration` reads and writes, as pydantic has it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from workron.core import duration
from workron.core.model import record


def _read(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return _exact(value)
    try:
        return duration.read(value)
    except ValueError as error:
        raise record.refusal(str(error)) from None


def _exact(value: timedelta) -> timedelta:
    if not timedelta(0) <= value <= duration.LONGEST or value % timedelta(milliseconds=1):
        raise record.refusal(f"{value} is not a number of milliseconds up to ten years")
    return value


def _read_positive(value: object) -> timedelta:
    try:
        return duration.positive(_read(value))
    except ValueError as error:
        raise record.refusal(str(error)) from None


_SCHEMA: Final[dict[str, Any]] = {
    "type": "string",
    "pattern": f"^{duration.PATTERN}$",
    "minLength": 2,
    "maxLength": duration.MOST_CHARACTERS,
}

Duration = Annotated[
    timedelta, BeforeValidator(_read), PlainSerializer(duration.render), WithJsonSchema(_SCHEMA)
]
PositiveDuration = Annotated[
    timedelta,
    BeforeValidator(_read_positive),
    PlainSerializer(duration.render),
    WithJsonSchema(_SCHEMA),
]
