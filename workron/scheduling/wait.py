"""Waits for runs to end, follows the output of a job, and survives outages of the store.

The store wakes a waiting process when jobs end or output arrives; polling covers lost wake-ups.
`StoreOutage` retries calls while the store does not answer, and reports the start and the end of
an outage once, however many calls fail during it.
"""

from __future__ import annotations

import asyncio
import functools
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from workron.core import errors, formats, printable, states
from workron.retry import RetryBackoff, retry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from workron.core.clock import Clock
    from workron.core.ids import JobId
    from workron.store.api import Store
    from workron.store.types import JobRow


Answer = TypeVar("Answer")

_POLL_SECONDS: Final = 0.5
_BATCH_SECONDS: Final = 0.05
"""Every end of a job wakes; a query after each of them would slow the jobs."""


async def wait(
    store: Store, runs: Sequence[JobId], outage: StoreOutage | None = None
) -> Sequence[JobRow]:
    """Return the rows of the runs, in their order, when all have ended.

    With `outage`, calls are retried while the store does not answer.
    """

    async def ask(call: Callable[[], Awaitable[Answer]]) -> Answer:
        return await (outage.retry(call) if outage else call())

    running = list(runs)
    while True:
        ended = await ask(functools.partial(store.filter_ended, running))
        running = [run for run in running if run not in ended]
        if not running:
            return await ask(functools.partial(store.get_jobs, runs))
        await store.wait_for_work(_POLL_SECONDS)
        await asyncio.sleep(_BATCH_SECONDS)


class OutputPart(NamedTuple):
    """A part of an attempt's output; empty data marks the start of a retry."""

    attempt: int
    data: bytes


async def follow(store: Store, job: JobId, outage: StoreOutage) -> AsyncIterator[OutputPart]:
    """Yield the output of the current attempt and of all later ones, as it arrives."""
    row = await _row(store, job, outage)
    attempt, chunk = max(1, row.attempts), 0
    while True:
        # The row is read before the chunks: if the attempt has ended by then, they are complete.
        row = await _row(store, job, outage)
        ask = functools.partial(store.read_output_chunks, job, attempt, chunk)
        if chunks := await outage.retry(ask):
            chunk = chunks[-1].chunk + 1
            for part in chunks:
                yield OutputPart(attempt, part.data)
        elif row.attempts > attempt:
            attempt, chunk = attempt + 1, 0
            yield OutputPart(attempt, b"")
        elif row.state in states.TERMINAL_STATES:
            return
        else:
            await store.wait_for_work(_POLL_SECONDS)
            await asyncio.sleep(_BATCH_SECONDS)


async def _row(store: Store, job: JobId, outage: StoreOutage) -> JobRow:
    [row] = await outage.retry(functools.partial(store.get_jobs, [job]))
    return row


_OUTAGE_LIMIT: Final = timedelta(minutes=1)
_PAUSE_SECONDS: Final = 0.5


class StoreOutage:
    """Retries calls while the store does not answer; one outage may span several calls."""

    def __init__(
        self,
        clock: Clock,
        say: Callable[[str], None],
        limit: timedelta = _OUTAGE_LIMIT,
        pause_seconds: float = _PAUSE_SECONDS,
    ) -> None:
        self._clock = clock
        self._say = say
        self._limit = limit
        self._backoff = RetryBackoff(pause_seconds, pause_seconds)
        self._since: float | None = None
        self._has_answered = False

    @property
    def is_on(self) -> bool:
        """Whether the last call failed."""
        return self._since is not None

    async def retry(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Call until the store answers; StoreTimeoutError when the outage exceeds its limit."""
        answer = await retry(
            call, errors=errors.TRANSIENT, backoff=self._backoff, on_retry=self._check
        )
        self._has_answered = True
        if self._since is not None:
            self._since = None
            self._say("the store answers again")
        return answer

    def _check(self, error: errors.StoreError, _: float) -> None:
        if isinstance(error, errors.StoreLoginError) and not self._has_answered:
            # Before the first answer, a refused login is more likely an error in the URL.
            raise error
        now = self._clock.monotonic()
        if self._since is None:
            self._since = now
            self._say(
                f"the store does not answer; retrying for {formats.format_duration(self._limit)}:"
                f" {printable.line(str(error))}"
            )
        if now - self._since > self._limit.total_seconds():
            raise errors.StoreTimeoutError(str(error)) from error
