"""What the rules need from outside and never take themselves: time and chance.

Rooms above pass the real ones in; tests pass ones that they turn by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime


class Clock(Protocol):
    """Two clocks: one to tell the time of day, one to measure with."""

    def now(self) -> datetime:
        """Tell the time of day, aware, in UTC."""

    def monotonic(self) -> float:
        """Count seconds that never jump, suspension of the machine included."""


class Rng(Protocol):
    """Chance: jitter and the random part of an id."""

    def random(self) -> float:
        """Draw from [0, 1)."""

    def getrandbits(self, k: int, /) -> int:
        """Draw k random bits."""


class Sleep(Protocol):
    """Waiting, which in a test takes no time."""

    async def __call__(self, seconds: float, /) -> None:
        """Return when so many seconds have passed."""
