"""Time and randomness as the rules take them: as arguments.

Callers pass the system's; tests pass their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime


class Clock(Protocol):
    """A wall clock and a monotonic clock."""

    def now(self) -> datetime:
        """Return the time of day in UTC, with its time zone."""

    def monotonic(self) -> float:
        """Return seconds that never jump and go on while the machine is suspended."""


class Rng(Protocol):
    """Random numbers, for jitter and for ids."""

    def random(self) -> float:
        """Return a number from [0, 1)."""

    def getrandbits(self, k: int, /) -> int:
        """Return an integer of k random bits."""


Sleep = Callable[[float], Awaitable[None]]
"""Returns after this many seconds; in tests at once."""
