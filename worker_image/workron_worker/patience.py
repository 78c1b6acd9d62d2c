"""Repeats a call to a store that does not answer, for as long as that is worth it.

Called by `loop` around every verb; each may be repeated as it is, for claims have ids of ours.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import structlog

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import timedelta

    from workron.core.ports import Clock

Answer = TypeVar("Answer")

_log = structlog.get_logger(__name__)
_PASSING: Final = (errors.StoreUnreachableError, errors.StoreBusyError)
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
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                return await call()
            except _PASSING as error:
                if self.clock.monotonic() + pause - began > self.limit.total_seconds():
                    raise
                _log.warning("store does not answer", error=str(error), next_try_seconds=pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
