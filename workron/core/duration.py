"""Lengths of time as people of Kubernetes write them: `90s`, `5m`, `1h30m`, `500ms`.

Units from the greatest to the smallest, each once, decimals allowed; nothing finer than a
millisecond and nothing longer than ten years. `model.duration` makes fields of manifests of it.
"""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Final

from workron.core import form

LONGEST: Final = timedelta(days=3650)
MOST_CHARACTERS: Final = 40
EXAMPLES: Final = "write it like 90s, 5m, 1h30m or 500ms"

_UNITS: Final = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_NUMBER: Final = r"[0-9]+(\.[0-9]+)?"
PATTERN: Final = "".join(rf"({_NUMBER}{unit})?" for unit in _UNITS)
_PART: Final = re.compile(rf"({_NUMBER})(ms|[hms])")


def parse(text: str) -> timedelta:
    """Read a duration; ValueError says in words what is wrong with it."""
    if text.startswith("-"):
        raise ValueError(f"{form.shown(text)} is negative; {EXAMPLES}")
    if not text or len(text) > MOST_CHARACTERS or not re.fullmatch(PATTERN, text):
        raise ValueError(f"{form.shown(text)} is not a duration; {EXAMPLES}")
    milliseconds = sum(Decimal(m[1]) * _UNITS[m[3]] for m in _PART.finditer(text))
    if milliseconds > LONGEST / timedelta(milliseconds=1):
        raise ValueError(f"{form.shown(text)} is longer than ten years (87600h)")
    if milliseconds % 1:
        raise ValueError(f"{form.shown(text)} is finer than a millisecond")
    return timedelta(milliseconds=int(milliseconds))


def read(value: object) -> timedelta:
    """Read a duration of a manifest, which may be something else than a text."""
    if isinstance(value, str):
        return parse(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f"{value} has no unit; {EXAMPLES}")  # noqa: TRY004 - as all refusals
    raise ValueError(f"this is not a duration; {EXAMPLES}")


def positive(duration: timedelta) -> timedelta:
    """Give a duration back, unless it is no time at all."""
    if not duration:
        raise ValueError("must be longer than nothing; to have no limit leave the field out")
    return duration


def render(duration: timedelta) -> str:
    """Write a duration so that `parse` reads the same."""
    rest = duration // timedelta(milliseconds=1)
    parts = []
    for unit, size in _UNITS.items():
        amount, rest = divmod(rest, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts) or "0s"
