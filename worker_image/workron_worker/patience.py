"""Repeats a call to a store that does not answer, for as long as that is worth it.

Called by `loop` around every verb; each may be repeated as it is, for claims have ids of ours.
`stream` repeats by itself, with the same pauses: it also has to know what is stored.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import structlog

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from datetime import timedelta

    from workron.core.ports import Clock

Answer = TypeVar("Answer")

_log = structlog.get_logger(__name__)
_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 2.0


@dataclass(slots=True)
class Patience:
    """How long a store may be away; who is in a hurry shortens it, for calls under way too."""

    clock: Clock
    limit: timedelta

    async def insist(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Call until there is an answer, or another error, or the limit is reached."""
        began = self.clock.monotonic()
        rests = pauses()
        while True:
            pause = next(rests)
            try:
                return await call()
            except errors.PASSING as error:
                if self.clock.monotonic() + pause - began > self.limit.total_seconds():
                    raise
                _log.warning("store does not answer", error=str(error), next_try_seconds=pause)
            await asyncio.sleep(pause)


def pauses() -> Iterator[float]:
    """Give how many seconds to wait before the next try, and the one after it, and so on."""
    pause = _FIRST_PAUSE_SECONDS
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
