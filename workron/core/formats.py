"""The formats of texts and durations: names, environment variables, commands, paths.

Each is defined once, here. The models use them with pydantic and in JSON schema; the worker and the
command line use them directly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Final

ARGUMENT_BYTES: Final = 128 * 1024 - 1
"""The longest argument of a program on Linux, without its closing NUL."""

LABEL_PATTERN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"

_SHOWN: Final = 60
_INVALID: Final = re.compile("[\0\ud800-\udfff]")
_LABEL_RULE: Final = "lowercase letters, digits and '-', a letter or digit at both ends"


def quoted(value: str) -> str:
    """Quote a value for a message, shortened and printable."""
    return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "…")


def invalid_character(value: str) -> str | None:
    """Return a message on the first character that a command or database cannot contain."""
    found = _INVALID.search(value)
    if found is None:
        return None
    what = "a NUL character" if found[0] == "\0" else "half of a surrogate pair"
    return f"has {what} at position {found.start()}; leave it out or encode it"


@dataclass(frozen=True, slots=True)
class TextFormat:
    """Format of a string. `pattern` matches all of it and is valid RE2."""

    description: str
    limit: int
    """Longest size in bytes of UTF-8."""
    pattern: str | None = None
    reserved: str | None = None
    """Prefix of the variables that Workron sets itself."""

    def problem(self, value: str) -> str | None:
        """Return what is wrong with a value; None if nothing is."""
        if problem := invalid_character(value):
            return problem
        size = len(value) if value.isascii() else len(value.encode())
        if size > self.limit:
            return f"is {size:,} bytes long; at most {self.limit:,} are allowed"
        if self.pattern is not None and not re.fullmatch(self.pattern, value):
            return f"{quoted(value)} is not {self.description}"
        if self.reserved is not None and value.startswith(self.reserved):
            rule = f"Workron sets variables that begin with {self.reserved}"
            return f"{quoted(value)} is reserved: {rule}"
        return None


LABEL: Final = TextFormat(f"a name: {_LABEL_RULE}", 63, LABEL_PATTERN)
POOL_NAME: Final = TextFormat(f"the name of a pool: {_LABEL_RULE}", 52, LABEL_PATTERN)
ENV_NAME: Final = TextFormat(
    "the name of an environment variable: letters, digits and '_', no digit first",
    255,
    r"[A-Za-z_][A-Za-z0-9_]*",
    reserved="WORKRON_",
)
ENV_VALUE: Final = TextFormat("a value", 128_000)
ARGUMENT: Final = TextFormat("an argument", ARGUMENT_BYTES)
COMMAND: Final = TextFormat("a command: it is blank", ARGUMENT_BYTES, r"[\s\S]*\S[\s\S]*")
PATH: Final = TextFormat("a path: it is empty", 4095, r"[\s\S]+")


MAX_DURATION: Final = timedelta(days=3650)
MAX_DURATION_CHARACTERS: Final = 40
DURATION_EXAMPLES: Final = "write it as 90s, 5m, 1h30m or 500ms"

_UNITS: Final = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_NUMBER: Final = r"[0-9]+(\.[0-9]+)?"
DURATION_PATTERN: Final = "".join(rf"({_NUMBER}{unit})?" for unit in _UNITS)
_PART: Final = re.compile(rf"({_NUMBER})(ms|[hms])")


def parse_duration(text: str) -> timedelta:
    """Read a duration; ValueError says what is wrong with it."""
    if text.startswith("-"):
        raise ValueError(f"{quoted(text)} is negative; {DURATION_EXAMPLES}")
    if not text or len(text) > MAX_DURATION_CHARACTERS or not re.fullmatch(DURATION_PATTERN, text):
        raise ValueError(f"{quoted(text)} is not a duration; {DURATION_EXAMPLES}")
    milliseconds = sum(Decimal(m[1]) * _UNITS[m[3]] for m in _PART.finditer(text))
    if milliseconds > MAX_DURATION / timedelta(milliseconds=1):
        raise ValueError(f"{quoted(text)} is longer than ten years (87600h)")
    if milliseconds % 1:
        raise ValueError(f"{quoted(text)} is finer than a millisecond")
    return timedelta(milliseconds=int(milliseconds))


def read_duration(value: object) -> timedelta:
    """Read a duration in a manifest, which may be of any type."""
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(f"{value} has no unit; {DURATION_EXAMPLES}")  # noqa: TRY004 - as all refusals
    raise ValueError(f"this is not a duration; {DURATION_EXAMPLES}")


def require_positive(duration: timedelta) -> timedelta:
    """Return the duration; ValueError if it is zero."""
    if not duration:
        raise ValueError("must be greater than zero; for no limit, remove the field")
    return duration


def format_duration(duration: timedelta) -> str:
    """Write a duration; `parse_duration` reads it back."""
    rest = duration // timedelta(milliseconds=1)
    parts = []
    for unit, size in _UNITS.items():
        amount, rest = divmod(rest, size)
        if amount:
            parts.append(f"{amount}{unit}")
    return "".join(parts) or "0s"
