"""Starts that this machine refused: a pause after each, and the end after too many in a row.

Called by `loop` around the start of every command.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from workron.core.clock import Clock
    from workron_worker.executor import StartError


_log = structlog.get_logger(__name__)
_MOST: Final = 5
"""So many starts in a row that this machine refuses will not pass."""


class StartFailures:
    """Counts them for one agent."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._count = 0
        self._steady_at = 0.0

    def start_well(self) -> None:
        """Note that a command could be started."""
        self._count = 0

    async def bear(self, error: StartError) -> None:
        """Wait before the next try; raise the error if too many have failed."""
        now = self._clock.monotonic()
        # Many that stumble over one moment have stumbled once.
        if now >= self._steady_at:
            self._count += 1
            if self._count >= _MOST:
                raise error
            pause = 2**self._count / 10
            self._steady_at = now + pause
            _log.warning("command was not started", error=str(error), pause_seconds=pause)
        # Its slot is held meanwhile, so that the next job does not stumble at once.
        await asyncio.sleep(self._steady_at - now)
