"""Retries calls to a store that is unavailable, within a limit that a stop shortens.

Every call may be repeated as it is, because claims have ids that the agent creates.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeVar

import structlog

from workron import retry
from workron.core import errors
from workron.core.clock import Clock
from workron.telemetry.logging import STORE_OUTAGE

Answer = TypeVar("Answer")

STORE_BACKOFF: Final = retry.RetryBackoff(first=0.05, longest=2.0)

_log = structlog.get_logger(__name__)
_MIN_CALL_SECONDS: Final = 0.5
"""A call that begins after the stop deadline has this long, to report what was killed late."""


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

    @contextlib.contextmanager
    def shortens(self, timeout: asyncio.Timeout) -> Iterator[None]:
        """Shorten this timeout, too, while the context is active."""
        self._timeouts.add(timeout)
        try:
            yield
        finally:
            self._timeouts.remove(timeout)

    async def call(self, function: Callable[[], Awaitable[Answer]]) -> Answer:
        """Call until there is an answer, an error that is not transient, or the limit is over."""
        stop_at = self._stop_at
        if stop_at is not None:
            stop_at = max(asyncio.get_running_loop().time() + _MIN_CALL_SECONDS, stop_at)
        timeout = asyncio.timeout_at(stop_at)
        try:
            with self.shortens(timeout):
                async with timeout:
                    return await retry.retry(
                        function,
                        errors=errors.TRANSIENT,
                        backoff=STORE_BACKOFF,
                        deadline=retry.RetryDeadline.after(self.clock, self.limit.total_seconds()),
                        on_retry=_log_retry,
                    )
        except TimeoutError as error:
            if not timeout.expired():
                raise
            raise errors.StoreUnreachableError("the store does not answer") from error


def _log_retry(error: Exception, pause: float) -> None:
    _log.warning(
        "store unavailable, retrying",
        event_id=STORE_OUTAGE,
        error=str(error),
        pause_seconds=pause,
    )
