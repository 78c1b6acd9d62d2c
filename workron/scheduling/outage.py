"""Bears a store that is away for a while: what only looks at it looks again, and loses nothing.

Called by `wait` and `follow`, by the commands that wait or follow around all that they ask, and by
`workron run` around its progress. Workers are as patient by themselves, and the maintainer more so.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar

from workron.core import duration, errors
from workron.scheduling import tail

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from workron.core.ports import Clock

Answer = TypeVar("Answer")

_USUAL: Final = timedelta(minutes=1)
_PAUSE_SECONDS: Final = 0.5


class Outage:
    """The one outage that there may be: it is told when it begins and when it is over."""

    def __init__(
        self, clock: Clock, say: Callable[[str], None], patience: timedelta = _USUAL
    ) -> None:
        self._clock = clock
        self._say = say
        self._patience = patience
        self._since: float | None = None
        self._has_answered = False

    @property
    def is_on(self) -> bool:
        """Whether the last question had no answer."""
        return self._since is not None

    async def bear(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Call until there is an answer; raises other errors, and StoreAwayError in the end."""
        while True:
            try:
                answer = await call()
            except errors.PASSING as error:
                self._endure(error)
            else:
                self._end()
                return answer
            await asyncio.sleep(_PAUSE_SECONDS)

    def _endure(self, error: errors.StoreError) -> None:
        if isinstance(error, errors.StoreRefusedError) and not self._has_answered:
            # Who was never let in has more likely a slip in the URL than bad luck.
            raise error
        now = self._clock.monotonic()
        if self._since is None:
            self._since = now
            self._say(
                "the store does not answer; it is asked again for"
                f" {duration.render(self._patience)}: {tail.line(str(error))}"
            )
        if now - self._since > self._patience.total_seconds():
            raise errors.StoreAwayError(str(error)) from error

    def _end(self) -> None:
        self._has_answered = True
        if self._since is not None:
            self._since = None
            self._say("the store answers again")
