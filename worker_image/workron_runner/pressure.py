"""Tells when memory runs short, before its limit ends more than who uses most.

Called by `crowd`. At a limit Linux kills whom it likes, in a pod the whole container. So somebody
looks how near the limit is, the more often the sooner it can be reached, and one attempt is killed
whole when little is left. Where there is no limit there is nothing to look at.
"""

from __future__ import annotations

import signal
from math import inf
from typing import TYPE_CHECKING, Final

from workron_runner import limits

if TYPE_CHECKING:
    from workron_runner.memory import Memory, Standing

_MIB: Final = 2**20
_LEAST_MARGIN: Final = 32 * _MIB
_MARGIN_SHARE: Final = 0.05
_MOST_MARGIN_SHARE: Final = 0.25
_FASTEST: Final = 4096 * _MIB
"""Bytes a second that commands may come to use; what is left lasts at least so long."""
_LOOK_SECONDS: Final = (0.005, 0.1)
_SHELL_SAYS_KILLED: Final = 128 + signal.SIGKILL
_KEPT_SECONDS: Final = 1
"""An end comes so soon after the kill that brought it about."""


def margin(limit: int) -> float:
    """So much has to stay free: enough to act in, and never most of a small room."""
    return min(max(limit * _MARGIN_SHARE, _LEAST_MARGIN), limit * _MOST_MARGIN_SHARE)


class Pressure:
    """Looks at the limit now and then, while anything runs."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._next = 0.0
        self._limit: int | None = None
        self._kills = memory.kills()
        self._unclaimed = 0
        self._risen_at = -inf

    def patience(self, moment: float) -> float:
        """Tell how many seconds are left until the next look."""
        return max(0.0, self._next - moment)

    def look(self) -> int | None:
        """Look, if it is time to; the limit that is near, if one is."""
        moment = limits.now()
        if moment < self._next:
            return None
        left = self._left(self._memory.standing())
        self._next = moment + min(max(left / _FASTEST, _LOOK_SECONDS[0]), _LOOK_SECONDS[1])
        self._count()
        return self._limit if left <= 0 else None

    def has_ended(self, code: int) -> int | None:
        """Give the limit, if it was Linux that ended a command so, for memory."""
        if code not in (-signal.SIGKILL, _SHELL_SAYS_KILLED):
            return None
        self._count()
        if not self._unclaimed or limits.now() > self._risen_at + _KEPT_SECONDS:
            return None
        self._unclaimed -= 1
        return self._limit

    def _left(self, standing: Standing | None) -> float:
        if standing is None:
            return inf
        self._limit = standing.limit
        return standing.left - margin(standing.limit)

    def _count(self) -> None:
        kills = self._memory.kills()
        if kills > self._kills:
            self._unclaimed = kills - self._kills
            self._risen_at = limits.now()
        self._kills = kills
