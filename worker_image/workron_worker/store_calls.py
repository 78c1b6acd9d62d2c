"""Repeats a call to a store that does not answer, for as long as that is worth it.

Called by `loop` around every verb; each may be repeated as it is, for claims have ids of ours.
`stream` repeats by itself, with the same pauses: it also has to know what is stored.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import structlog

from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from datetime import timedelta

    from workron.core.clock import Clock
    from workron.core.ids import SessionKey
    from workron.store.api import WorkerStore


Answer = TypeVar("Answer")

_log = structlog.get_logger(__name__)
_FIRST_PAUSE_SECONDS: Final = 0.05
_LONGEST_PAUSE_SECONDS: Final = 2.0
_LAST_TRY_SECONDS: Final = 0.5
"""What is called after the hurry is over has this long: what was killed late is told, too."""


@dataclass(slots=True)
class StoreRetry:
    """How long a store may be away; who is in a hurry shortens it, for calls under way too."""

    clock: Clock
    limit: timedelta
    _waits: set[asyncio.Timeout] = field(default_factory=set)
    _hurried_until: float | None = None

    def hurry(self, limit: timedelta) -> None:
        """Wait no longer than that from now on, whatever is called."""
        self.limit = min(self.limit, limit)
        self._hurried_until = asyncio.get_running_loop().time() + limit.total_seconds()
        self.cut(limit)

    def cut(self, limit: timedelta) -> None:
        """Wait no longer than that for the calls under way, also for one that hangs."""
        until = asyncio.get_running_loop().time() + limit.total_seconds()
        for wait in self._waits:
            if not wait.expired():
                wait.reschedule(min(until, wait.when() or until))

    async def insist(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Call until there is an answer, or another error, or the limit is reached."""
        wait = asyncio.timeout_at(self._last_moment())
        self._waits.add(wait)
        try:
            async with wait:
                return await self._repeat(call)
        except TimeoutError as error:
            if not wait.expired():
                raise
            raise errors.StoreUnreachableError("the store does not answer") from error
        finally:
            self._waits.remove(wait)

    def _last_moment(self) -> float | None:
        if self._hurried_until is None:
            return None
        least = asyncio.get_running_loop().time() + _LAST_TRY_SECONDS
        return max(least, self._hurried_until)

    async def _repeat(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        began = self.clock.monotonic()
        rests = pauses()
        while True:
            pause = next(rests)
            try:
                return await call()
            except errors.TRANSIENT as error:
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


_SECONDS: Final = 1.0
_SECONDS_WHEN_AWAY: Final = 0.25
"""To a store that has just not answered."""


async def deregister(
    door: WorkerStore, key: SessionKey, worker: str, cause: BaseException | None = None
) -> bool:
    """Leave the store, after that error if there was one; tell whether that was heard."""
    is_away = isinstance(cause, errors.TRANSIENT)
    try:
        async with asyncio.timeout(_SECONDS_WHEN_AWAY if is_away else _SECONDS):
            await door.deregister(key)
    except (errors.StoreError, TimeoutError) as error:
        if cause is None:
            _log.info(
                "store does not hear the goodbye: the lease ends this worker's session",
                worker=worker,
                error=str(error) or "no answer in time",
            )
        return False
    return True


def first_error(failed: BaseExceptionGroup[BaseException]) -> BaseException:
    """Give one error of several that came of the same cause: the group says no more to a user."""
    one = failed.exceptions[0]
    return first_error(one) if isinstance(one, BaseExceptionGroup) else one


def not_deregistered(cause: BaseException, held: int) -> BaseException:
    """Say beside the error what becomes of the claims that the store was not told about."""
    if not isinstance(cause, errors.TRANSIENT):
        return cause
    jobs = "1 job" if held == 1 else f"{held} jobs"
    return type(cause)(
        f"{cause}; what this worker held ({jobs}) is taken back when its lease is over"
    )
