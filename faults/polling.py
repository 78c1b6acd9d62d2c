"""Waits for a condition that other processes change; a timeout names the condition.

No event reports such a change, so the condition is polled.
"""

import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
_PAUSE_SECONDS = 0.02


def until(
    condition: Callable[[], _T],
    what: str,
    seconds: float = 30,
    details: Callable[[], str] = str,
) -> _T:
    """Return the condition's first true value; `details` is added to the error after a timeout."""
    limit = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < limit, f"not within {seconds:g} s: {what}\n{details()}"
        time.sleep(_PAUSE_SECONDS)
    return value
