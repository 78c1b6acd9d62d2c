"""The system clock and random numbers, which commands inject into the other parts."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from workron.core.clock import Clock, Rng


# CLOCK_MONOTONIC stops while a laptop sleeps, and leases do not.
_CLOCK_ID: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

KILL_GRACE: Final = timedelta(seconds=3)
"""Time between SIGTERM and SIGKILL."""


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> datetime:
        """Return the time of day in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that include suspension of the machine."""
        return time.clock_gettime(_CLOCK_ID)


CLOCK: Final[Clock] = SystemClock()
RNG: Final[Rng] = random.SystemRandom()
