"""Watches that the event loop turns: it writes down the time each second, and others read it.

Made by `health`; read on the thread that answers probes, which is not the one that is watched.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from types import TracebackType

    from workron.core.ports import Clock

_EVERY_SECONDS: Final = 1.0
_STUCK_SECONDS: Final = 10.0
"""The usual lease; by then a worker whose loop is stuck has lost what it claimed."""


class Turning:
    """Entered and left on the loop that it watches."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turned_at = clock.monotonic()
        self._next: asyncio.TimerHandle | None = None

    def why_stuck(self) -> str | None:
        """Say that the loop does not turn; None if it does."""
        age = self._clock.monotonic() - self._turned_at
        return f"the event loop has not turned for {age:.1f} s" if age > _STUCK_SECONDS else None

    def __enter__(self) -> Self:
        self._turn()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._next is not None:
            self._next.cancel()

    def _turn(self) -> None:
        self._turned_at = self._clock.monotonic()
        self._next = asyncio.get_running_loop().call_later(_EVERY_SECONDS, self._turn)
