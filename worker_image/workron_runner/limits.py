"""Time in a runner: on the clock that goes on while the machine is suspended or the process frozen.

Called by all of the runner that waits for something, and by `workron_worker.runner_process`, which
compares the clocks. Neither a suspension nor a freeze gives a command more time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

TICK_SECONDS: Final = 0.5
"""While anything runs, the runner looks this often: waiting itself stands still in a suspension."""


def now() -> float:
    """Read the clock; agent and runner read the same one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@dataclass(slots=True)
class Term:
    """The next moment at which something has to be done about an attempt."""

    at: float = inf


class Terms:
    """Finds the attempts whose moment has come without looking at all of them each time."""

    def __init__(self) -> None:
        self._earliest = inf

    def set(self, term: Term, at: float) -> None:
        """Set the moment of one attempt."""
        term.at = at
        self._earliest = min(self._earliest, at)

    def are_due(self, moment: float) -> bool:
        """Whether one of them may be due."""
        return moment >= self._earliest

    def renew(self, terms: Iterable[Term]) -> None:
        """Look at all that there are, when some are over or were set anew."""
        self._earliest = min((one.at for one in terms), default=inf)

    def left(self, moment: float) -> float:
        """Tell how many seconds are left until the next may be due."""
        return max(0.0, self._earliest - moment)
