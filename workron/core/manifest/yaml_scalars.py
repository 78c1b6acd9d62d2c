r"""The meaning of a plain YAML scalar: a text, a number, true, false or null.

The rules are those of the reader behind `kubectl apply`, so that one file means one thing on a
laptop and in a cluster. They are neither YAML 1.1 nor 1.2: `y` and `off` are booleans, `017` and
`0o17` are both fifteen, underscores in numbers are skipped, but `12:30:00` and dates are texts.
What looks like a float and is whole (`1e3`, `3.0`) is an integer, because the values pass through
JSON there. Each rule was tried on `kubectl` itself; the tests hold the table.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from workron.core import formats

Scalar = str | int | float | bool | None

_SPELLINGS: Final[tuple[tuple[Scalar, str], ...]] = (
    (True, "y Y yes Yes YES true True TRUE on On ON"),
    (False, "n N no No NO false False FALSE off Off OFF"),
    (None, "~ null Null NULL"),
    (math.nan, ".nan .NaN .NAN"),
    (math.inf, ".inf .Inf .INF +.inf +.Inf +.INF"),
    (-math.inf, "-.inf -.Inf -.INF"),
)
WORDS: Final[Mapping[str, Scalar]] = {"": None} | {
    word: value for value, words in _SPELLINGS for word in words.split()
}
"""Plain scalars that are neither a text nor a finite number; other spellings are texts."""

# Underscores are taken out before an integer is looked for, but not from a number that begins
# with its point: there they may only stand between digits.
_INTEGER: Final = re.compile(
    r"(?P<sign>[-+]?)(0[bB](?P<two>[01]+)|0[xX](?P<sixteen>[0-9a-fA-F]+)"
    r"|0[oO]?(?P<eight>[0-7]+)|(?P<ten>0|[1-9][0-9]*))|0b(?P<odd>[-+][01]+)"
)
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_DIGITS: Final = r"[0-9]+(_[0-9]+)*"
_POINTED: Final = re.compile(rf"\.{_DIGITS}([eE][-+]?{_DIGITS})?")
_BASES: Final = {"two": 2, "eight": 8, "ten": 10, "sixteen": 16, "odd": 2}

_NUMBER_STARTS: Final = frozenset("+-0123456789")
_INT64: Final = range(-(2**63), 2**63)
_LONGEST_NUMBER: Final = 400
_WHOLE_BELOW: Final = 1e21
"""From here on JSON writes a whole float with an exponent, and it stays a float."""


def resolve_scalar(text: str) -> Scalar:
    """Return the value of a plain scalar; a float may be infinite or not a number."""
    if text in WORDS:
        return WORDS[text]
    if text[0] == ".":
        return _to_float(text, text.replace("_", "")) if _POINTED.fullmatch(text) else text
    if text[0] not in _NUMBER_STARTS:
        return text
    plain = text.replace("_", "")
    found = _INTEGER.fullmatch(plain)
    if not found:
        return _to_float(text, plain) if _FLOAT.fullmatch(plain) else text
    if len(plain) > _LONGEST_NUMBER:
        return _INT64.stop
    base, digits = next((b, found[name]) for name, b in _BASES.items() if found[name])
    return int((found["sign"] or "") + digits, base)


def _to_float(text: str, plain: str) -> Scalar:
    value = float(plain)
    return value if math.isfinite(value) else text


_TAG: Final = "tag:yaml.org,2002:"
_TAGGED: Final[Mapping[str, tuple[type, ...]]] = {
    f"{_TAG}bool": (bool,),
    f"{_TAG}int": (int,),
    f"{_TAG}float": (float, int),
    f"{_TAG}null": (type(None),),
}
_SHORT: Final = 64
_CACHE_SIZE: Final = 16_384
UNTAGGED: Final = frozenset({None, "!"})
CONTAINERS: Final = UNTAGGED | {f"{_TAG}map", f"{_TAG}seq"}


def read_scalar(text: str, tag: str | None, *, is_plain: bool) -> tuple[Scalar, str | None]:
    """Return the value of a scalar, and the problem with it, if any."""
    if len(text) <= _SHORT:
        return _read_cached(text, tag, is_plain=is_plain)
    return _read(text, tag, is_plain=is_plain)


def _read(text: str, tag: str | None, *, is_plain: bool) -> tuple[Scalar, str | None]:
    if tag in UNTAGGED:
        value = resolve_scalar(text) if is_plain else text
    elif types := _TAGGED.get(str(tag)):
        value = resolve_scalar(text)
        if type(value) not in types:
            return text, f"{formats.quoted(text)} is not of the type that its tag says"
    elif tag == f"{_TAG}str":
        value = text
    else:
        return text, unsupported_tag(tag)
    return value, scalar_problem(as_json(value))


# Keys and names are repeated many times in a file. Long texts are not worth caching.
_read_cached: Final = functools.lru_cache(maxsize=_CACHE_SIZE)(_read)


def unsupported_tag(tag: str | None) -> str:
    """Return the message on a tag that is not a YAML tag for a JSON type."""
    written = str(tag).replace(_TAG, "!!")
    return f"the tag {written} is not supported; remove it, or quote a text that begins with '!'"


def scalar_problem(value: Scalar) -> str | None:
    """Return why JSON or a command cannot contain a value; None if they can."""
    if isinstance(value, str):
        return formats.invalid_character(value)
    if isinstance(value, float) and not math.isfinite(value):
        return (
            "is infinite or not a number, which JSON does not have; for a text, write it in quotes"
        )
    if isinstance(value, int) and value not in _INT64:
        return "is an integer beyond 64 bits; for a text, write it in quotes"
    return None


def as_json(value: Scalar) -> Scalar:
    """Turn a whole float into the integer that it becomes by a round trip through JSON."""
    if isinstance(value, float) and abs(value) < _WHOLE_BELOW and value.is_integer():
        # JSON writes the shortest digits that mean the float, and zeros after them.
        return int(Decimal(repr(value)))
    return value
