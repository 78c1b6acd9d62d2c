"""Lengths of time as people of Kubernetes write them: `90s`, `5m`, `1h30m`, `500ms`.

Units from the greatest to the smallest, each once, decimals allowed; nothing finer than a
millisecond and nothing longer than ten years. Used for every field that is a duration.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from workron.core.model import record, scalar

LONGEST: Final = timedelta(days=3650)
_UNITS: Final = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_NUMBER: Final = r"[0-9]+(\.[0-9]+)?"
_PATTERN: Final = "".join(rf"({_NUMBER}{unit})?" for unit in _UNITS)
_PART: Final = re.compile(rf"({_NUMBER})(ms|[hms])")
_MAX_CHARACTERS: Final = 40
_EXAMPLES: Final = "write it like 90s, 5m, 1h30m or 500ms"


def parse(text: str) -> timedelta:
    """Read a duration; raises a refusal in words."""
    if text.startswith("-"):
        raise record.refusal(f"{scalar.shown(text)} is negative; {_EXAMPLES}")
    if not text or len(text) > _MAX_CHARACTERS or not re.fullmatch(_PATTERN, text):
        raise record.refusal(f"{scalar.shown(text)} is not a duration; {_EXAMPLES}")
    milliseconds = sum(Decimal(m[1]) * _UNITS[m[3]] for m in _PART.finditer(text))
    if milliseconds > LONGEST / timedelta(milliseconds=1):
        raise record.refusal(f"{scalar.shown(text)} is longer than ten years (87600h)")
    if milliseconds % 1:
        raise record.refusal(f"{scalar.shown(text)} is finer than a millisecond")
    return timedelta(milliseconds=int(milliseconds))


def render(duration: timedelta) -> str:
    """Write a duration so that `parse` reads the same."""
    rest = duration // timedelta(milliseconds=1)
    parts = []
    for unit, size in _UNITS.items():
        amount, rest = divmod(rest, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts) or "0s"


def _read(value: object) -> timedelta:
    if isinstance(value, timedelta):
        return _exact(value)
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise record.refusal(f"{value} has no unit; {_EXAMPLES}")
    raise record.refusal(f"this is not a duration; {_EXAMPLES}")


def _exact(value: timedelta) -> timedelta:
    if not timedelta(0) <= value <= LONGEST or value % timedelta(milliseconds=1):
        raise record.refusal(f"{value} is not a number of milliseconds up to ten years")
    return value


def _read_positive(value: object) -> timedelta:
    duration = _read(value)
    if not duration:
        raise record.refusal("must be longer than nothing; to have no limit leave the field out")
    return duration


_SCHEMA: Final[dict[str, Any]] = {
    "type": "string",
    "pattern": f"^{_PATTERN}$",
    "minLength": 2,
    "maxLength": _MAX_CHARACTERS,
}

Duration = Annotated[
    timedelta, BeforeValidator(_read), PlainSerializer(render), WithJsonSchema(_SCHEMA)
]
PositiveDuration = Annotated[
    timedelta, BeforeValidator(_read_positive), PlainSerializer(render), WithJsonSchema(_SCHEMA)
]
