"""Retry: call again what failed with an error that may pass, after longer and longer pauses.

`RetryBackoff` says how long the pauses are: pause `n` (from 0) is

    min(longest, first * factor ** n) * (1 - jitter * random())

so `jitter` is the share of a pause that is random: 0 for none, 0.5 for half of it. Clients that
failed at the same moment then do not come back at the same moment.

`retry` makes the calls. It ends with the first result, with the first error of another kind, or
with the last error when `RetryBackoff.max_calls` calls were made or when the next pause would end
after the deadline. `on_retry` sees every error that is retried, and ends the retry by raising.
Time, pauses and randomness are injected; a test passes its own.

Code that repeats a call in a loop of its own (a watch that is opened again, a status that is
written again later) uses `RetryBackoff.pause` with the number of failures in a row.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from workron.core.clock import Clock, Rng, Sleep


Result = TypeVar("Result")
Error = TypeVar("Error", bound=Exception)

_MAX_EXPONENT: Final = 64
"""Larger powers overflow a float, and every `longest` is reached by then."""


class RetryAfterError(Exception):
    """Base of errors whose sender asks for a pause, as HTTP does with `Retry-After`."""

    after: float | None = None
    """Seconds, added to the pause of the backoff."""


@dataclass(frozen=True, slots=True)
class RetryBackoff:
    """The pauses between calls, in seconds; `rng` is needed for jitter only."""

    first: float
    longest: float
    factor: float = 2.0
    jitter: float = 0.0
    rng: Rng | None = None
    max_calls: int | None = None

    def pause(self, failures: int) -> float:
        """Return the pause after that many failures in a row, at least one."""
        exponent = min(failures - 1, _MAX_EXPONENT)
        pause = min(self.longest, self.first * self.factor**exponent)
        if self.rng is None:
            return pause
        return pause * (1 - self.jitter * self.rng.random())

    def pauses(self) -> Iterator[float]:
        """Yield the pause after each call that fails; nothing after the last call allowed."""
        calls = count(1) if self.max_calls is None else range(1, self.max_calls)
        return map(self.pause, calls)


class RetryDeadline(NamedTuple):
    """A moment on a clock that no pause may pass."""

    clock: Clock
    at: float

    @classmethod
    def after(cls, clock: Clock, seconds: float) -> Self:
        """Make the deadline that is this many seconds from now."""
        return cls(clock, clock.monotonic() + seconds)

    def is_before(self, pause: float) -> bool:
        """Return whether a pause that begins now would end after the deadline."""
        return self.clock.monotonic() + pause > self.at


async def retry(
    call: Callable[[], Awaitable[Result]],
    *,
    errors: type[Error] | tuple[type[Error], ...],
    backoff: RetryBackoff,
    deadline: RetryDeadline | None = None,
    sleep: Sleep = asyncio.sleep,
    on_retry: Callable[[Error, float], None] | None = None,
) -> Result:
    """Call until there is a result; `on_retry` gets each error and the pause that follows it."""
    for backoff_pause in backoff.pauses():
        try:
            return await call()
        except errors as error:
            pause = backoff_pause
            if isinstance(error, RetryAfterError):
                pause += error.after or 0.0
            if deadline is not None and deadline.is_before(pause):
                raise
            if on_retry is not None:
                on_retry(error, pause)
        await sleep(pause)
    return await call()
