"""Waits for what other processes do: until it is so, or with an error that says what was awaited.

Nothing here tells a test when a process of its own has changed something, so it looks again.
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
    told: Callable[[], str] = str,
) -> _T:
    """Give the condition's first answer that is true; `told` says more when there is none."""
    limit = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < limit, f"not within {seconds:g} s: {what}\n{told()}"
        time.sleep(_PAUSE_SECONDS)
    return answer
