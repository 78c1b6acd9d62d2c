"""How long to wait before the next try of what failed: each time twice as long, to a bound. Pure.

Called by whoever tries for as long as it takes: `telling` with what is refused, `intake` with a
watch that ends. What is given up after a while is tried by `api.retrying`.
"""

from __future__ import annotations


class Backoff:
    """Counts what has failed in a row."""

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._next = first

    def more(self) -> float:
        """Say how many seconds to wait now that it has failed once more."""
        wait, self._next = self._next, min(2 * self._next, self._longest)
        return wait

    def reset(self) -> None:
        """Begin from the start: it has not failed."""
        self._next = self._first
