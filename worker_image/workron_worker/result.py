"""Reads the small JSON value that a job may leave for its downstreams in `$WORKRON_RESULT`.

Called by `runner_executor` with what the runner found there, after a command has ended well. The
value comes from the command, so it is trusted in nothing: not to be flat, not to be JSON that a
store can keep.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Final, Never

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LIMIT_DEPTH: Final = 64
"""Whoever reads it parses it some levels deeper, and no parser goes down for ever."""

_TOO_DEEP: Final = f"the result is nested too deeply: more than {LIMIT_DEPTH} levels"


class ResultError(errors.InputError):
    """What the command wrote as its result cannot be taken."""


def parse(raw: bytes) -> Any:
    """Give the value that these bytes say, None for none; ResultError says what is wrong."""
    if not raw.strip():
        return None
    try:
        value = json.loads(raw, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise ResultError(_TOO_DEEP) from None
    except ValueError as error:
        raise ResultError(f"the result is not JSON: {error}") from None
    for text in _strings(value):
        _check_text(text)
    return value


def _refuse_constant(word: str) -> Never:
    raise ResultError(f"the result is not JSON: it has no number {word}")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ResultError(f"the result has a number that is out of range: {digits[:40]}")
    return number


def _strings(value: Any) -> Iterator[str]:
    level = [value]
    for _ in range(LIMIT_DEPTH + 1):
        yield from (one for one in level if isinstance(one, str))
        folds = [one for one in level if isinstance(one, (dict, list))]
        if not folds:
            return
        level = [inner for one in folds for inner in _inside(one)]
    raise ResultError(_TOO_DEEP)


def _inside(fold: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return [*fold.keys(), *fold.values()] if isinstance(fold, dict) else fold


def _check_text(text: str) -> None:
    # PostgreSQL's jsonb keeps neither; one rule for all stores.
    if "\x00" in text:
        raise ResultError("the result has a string with a NUL character")
    if not text.isascii() and any("\ud800" <= one <= "\udfff" for one in text):
        raise ResultError("the result has a string with half of a surrogate pair")
