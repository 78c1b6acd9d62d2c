"""Retries calls to a store that is unavailable, and ends a session of it.

Every call may be repeated as it is, because claims have ids that the agent creates.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import structlog

from workron import retry
from workron.core import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import timedelta

    from workron.core.clock import Clock
    from workron.core.ids import SessionKey
    from workron.store.api import WorkerStore


Answer = TypeVar("Answer")

STORE_BACKOFF: Final = retry.RetryBackoff(first=0.05, longest=2.0)

_log = structlog.get_logger(__name__)
_MIN_CALL_SECONDS: Final = 0.5
"""A call that begins after the stop deadline has this long, to report what was killed late."""
_DEREGISTER_SECONDS: Final = 1.0
_DEREGISTER_SECONDS_AFTER_OUTAGE: Final = 0.25


@dataclass(slots=True)
class StoreRetry:
    """Retries within a limit, which can be shortened while calls are under way."""

    clock: Clock
    limit: timedelta
    """How long the store may be unavailable."""
    _timeouts: set[asyncio.Timeout] = field(default_factory=set)
    _stop_at: float | None = None

    def stop_within(self, limit: timedelta) -> None:
        """Shorten the limit of every call, also of those under way."""
        self.limit = min(self.limit, limit)
        self._stop_at = asyncio.get_running_loop().time() + limit.total_seconds()
        self.shorten_current_calls(limit)

    def shorten_current_calls(self, limit: timedelta) -> None:
        """Shorten the limit of the calls under way, also of one that hangs."""
        until = asyncio.get_running_loop().time() + limit.total_seconds()
        for timeout in self._timeouts:
            if not timeout.expired():
                timeout.reschedule(min(until, timeout.when() or until))

    async def call(self, function: Callable[[], Awaitable[Answer]]) -> Answer:
        """Call until there is an answer, an error that is not transient, or the limit is over."""
        timeout = asyncio.timeout_at(self._call_deadline())
        self._timeouts.add(timeout)
        try:
            async with timeout:
                return await self._retry(function)
        except TimeoutError as error:
            if not timeout.expired():
                raise
            raise errors.StoreUnreachableError("the store does not answer") from error
        finally:
            self._timeouts.remove(timeout)

    def _call_deadline(self) -> float | None:
        if self._stop_at is None:
            return None
        return max(asyncio.get_running_loop().time() + _MIN_CALL_SECONDS, self._stop_at)

    async def _retry(self, function: Callable[[], Awaitable[Answer]]) -> Answer:
        return await retry.retry(
            function,
            errors=errors.TRANSIENT,
            backoff=STORE_BACKOFF,
            deadline=retry.RetryDeadline.after(self.clock, self.limit.total_seconds()),
            on_retry=_log_retry,
        )


def _log_retry(error: Exception, pause: float) -> None:
    _log.warning("store unavailable, retrying", error=str(error), pause_seconds=pause)


async def deregister(
    store: WorkerStore, key: SessionKey, worker: str, cause: BaseException | None = None
) -> bool:
    """End a session, once and without retries; whether the store has answered.

    `cause` is the error that ended the agent, if any.
    """
    is_outage = isinstance(cause, errors.TRANSIENT)
    seconds = _DEREGISTER_SECONDS_AFTER_OUTAGE if is_outage else _DEREGISTER_SECONDS
    try:
        async with asyncio.timeout(seconds):
            await store.deregister(key)
    except (errors.StoreError, TimeoutError) as error:
        if cause is None:
            _log.info(
                "deregistration failed; the lease will expire",
                worker=worker,
                error=str(error) or "no answer in time",
            )
        return False
    return True


def with_unreported_claims(cause: BaseException, count: int) -> BaseException:
    """Add to a transient error what becomes of the claims that the store still counts."""
    if not isinstance(cause, errors.TRANSIENT):
        return cause
    jobs = "1 job" if count == 1 else f"{count} jobs"
    return type(cause)(f"{cause}; the store requeues {jobs} of this worker when its lease expires")
