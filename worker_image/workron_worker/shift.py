"""When an agent has worked enough and drains by itself: after so many jobs, or when none is left.

Called by `loop` around each exchange with the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workron.core.ports import Clock
    from workron_worker.surroundings import Rhythm


class Shift:
    """Counts what was claimed, and how long there has been nothing to claim."""

    def __init__(self, clock: Clock, rhythm: Rhythm) -> None:
        self._clock = clock
        self._left = rhythm.most_jobs
        self._longest_idle = rhythm.longest_idle
        self._idle_since: float | None = None

    def cap(self, free: int) -> int:
        """Say how many of the free slots may be filled."""
        return free if self._left is None else min(free, self._left)

    def reach(self, *, asked: int, granted: int, running: int) -> str | None:
        """Take in one exchange; if it was the last that asks for claims, name the limit met."""
        if self._left is not None:
            self._left -= granted
        is_idle = self._is_idle(is_busy=bool(granted or running), asked=asked)
        if self._left == 0:
            return "max_jobs"
        return "idle_exit" if is_idle else None

    @property
    def idle_left(self) -> float:
        """Seconds until nothing was found for too long; 0: it is so, or there is no such limit."""
        if self._longest_idle is None or self._idle_since is None:
            return 0.0
        over_at = self._idle_since + self._longest_idle.total_seconds()
        return max(0.0, over_at - self._clock.monotonic())

    def _is_idle(self, *, is_busy: bool, asked: int) -> bool:
        now = self._clock.monotonic()
        if is_busy:
            self._idle_since = None
        elif self._idle_since is None and asked:
            self._idle_since = now
        if self._longest_idle is None or self._idle_since is None or not asked:
            return False
        return now - self._idle_since >= self._longest_idle.total_seconds()
