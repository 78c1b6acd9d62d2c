"""This machine's time and chance, for the ports of the core. Handed on by the commands."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from workron.core.clock import Clock, Rng


# CLOCK_MONOTONIC stands still while a laptop sleeps, and leases do not.
_COUNTING: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

KILL_GRACE: Final = timedelta(seconds=3)
"""Between TERM and KILL."""


class SystemClock:
    """The clocks of this machine."""

    def now(self) -> datetime:
        """Tell the time of day."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Count seconds, those asleep included."""
        return time.clock_gettime(_COUNTING)


CLOCK: Final[Clock] = SystemClock()
RNG: Final[Rng] = random.SystemRandom()
