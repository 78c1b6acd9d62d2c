"""Bears a store that is away for a while: what only looks at it looks again, and loses nothing.

Called by `wait`, and by `workron run` around its progress. Workers are as patient by themselves,
and the maintainer more so.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from workron.core.ports import Clock

Answer = TypeVar("Answer")

_PATIENCE: Final = timedelta(minutes=1)
_PAUSE_SECONDS: Final = 0.5


class Outage:
    """The one outage that there may be: it is told when it begins and when it is over."""

    def __init__(self, clock: Clock, say: Callable[[str], None]) -> None:
        self._clock = clock
        self._say = say
        self._since: float | None = None

    async def bear(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Call until there is an answer; raises other errors, and these after a minute."""
        while True:
            try:
                answer = await call()
            except errors.PASSING:
                if self._is_too_long():
                    raise
            else:
                self._end()
                return answer
            await asyncio.sleep(_PAUSE_SECONDS)

    def _is_too_long(self) -> bool:
        now = self._clock.monotonic()
        if self._since is None:
            self._since = now
            self._say("the store does not answer; it is asked again for a minute")
        return now - self._since > _PATIENCE.total_seconds()

    def _end(self) -> None:
        if self._since is not None:
            self._since = None
            self._say("the store answers again")
