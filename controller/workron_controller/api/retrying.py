"""Repeats what may pass: the one place that decides how often, and after how long.

Called by who has time. A request whose answer was lost may have been done: to create it again is
answered by ConflictError, to delete it again by AbsentError.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final, TypeVar

from workron_controller.api import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from workron.core.ports import Clock, Rng, Sleep

Answer = TypeVar("Answer")

_FIRST_SECONDS: Final = 0.5
_LONGEST_SECONDS: Final = 10.0


class Retrying:
    """Patience, and how much of it there is."""

    def __init__(
        self, clock: Clock, rng: Rng, seconds: float = 60.0, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._seconds = seconds
        self._sleep = sleep

    async def __call__(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Call until there is an answer; raises what does not pass, or has not in time."""
        end, tries = self._clock.monotonic() + self._seconds, 0
        while True:
            try:
                return await call()
            except errors.PassingError as error:
                wait = self._wait(error, tries)
                if self._clock.monotonic() + wait > end:
                    raise
            tries += 1
            await self._sleep(wait)

    def _wait(self, error: errors.PassingError, tries: int) -> float:
        """As long as the server asks for, and never all at the same moment."""
        longest = min(_LONGEST_SECONDS, math.ldexp(_FIRST_SECONDS, tries))
        return (error.after or 0.0) + longest * (1 + self._rng.random()) / 2
