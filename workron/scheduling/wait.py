"""Wait: until runs have ended, by whatever worker.

Called by `workron run` and `workron wait`; whoever calls it bounds the time.
"""

from __future__ import annotations

import asyncio
import functools
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from workron.core import errors, formats, printable, states

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from workron.core.clock import Clock
    from workron.core.ids import JobId
    from workron.store.api import Store
    from workron.store.types import JobRow


_POLL_SECONDS: Final = 0.5
_BREATH_SECONDS: Final = 0.05
"""Every end of a job wakes; asking after each of them would slow what is waited for."""


async def wait(
    store: Store, runs: Sequence[JobId], outage: StoreOutage | None = None
) -> Sequence[JobRow]:
    """Answer the rows of the runs, in their order, when the last of them has ended.

    With an `outage`, a store that is away for a while is borne.
    """
    open_ = list(runs)
    while open_ := await _still_open(store, open_, outage):
        await store.wait_for_work(_POLL_SECONDS)
        await asyncio.sleep(_BREATH_SECONDS)
    read = functools.partial(store.get_jobs, runs)
    return await (outage.bear(read) if outage else read())


async def _still_open(
    store: Store, runs: Sequence[JobId], outage: StoreOutage | None
) -> list[JobId]:
    ask = functools.partial(store.filter_ended, runs)
    ended = await (outage.bear(ask) if outage else ask())
    return [run for run in runs if run not in ended]


_FOLLOW_POLL_SECONDS: Final = 0.5
_FOLLOW_BREATH_SECONDS: Final = 0.05
"""Every end of a job wakes; looking after each of them would be asking without a pause."""


class OutputPart(NamedTuple):
    """Some of what an attempt wrote; nothing: the attempt begins, after another."""

    attempt: int
    data: bytes


async def follow(store: Store, job: JobId, outage: StoreOutage) -> AsyncIterator[OutputPart]:
    """Give what the current attempt wrote, or will write, and then all that come after it."""
    row = await _row(store, job, outage)
    attempt, chunk = max(1, row.attempts), 0
    while True:
        # The row is looked at before the pieces: so what it has left behind is complete.
        row = await _row(store, job, outage)
        ask = functools.partial(store.read_output_chunks, job, attempt, chunk)
        if pieces := await outage.bear(ask):
            chunk = pieces[-1].chunk + 1
            for piece in pieces:
                yield OutputPart(attempt, piece.data)
        elif row.attempts > attempt:
            attempt, chunk = attempt + 1, 0
            yield OutputPart(attempt, b"")
        elif row.state in states.TERMINAL_STATES:
            return
        else:
            await store.wait_for_work(_FOLLOW_POLL_SECONDS)
            await asyncio.sleep(_FOLLOW_BREATH_SECONDS)


async def _row(store: Store, job: JobId, outage: StoreOutage) -> JobRow:
    [row] = await outage.bear(functools.partial(store.get_jobs, [job]))
    return row


Answer = TypeVar("Answer")

_USUAL: Final = timedelta(minutes=1)
_PAUSE_SECONDS: Final = 0.5


class StoreOutage:
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
            except errors.TRANSIENT as error:
                self._endure(error)
            else:
                self._end()
                return answer
            await asyncio.sleep(_PAUSE_SECONDS)

    def _endure(self, error: errors.StoreError) -> None:
        if isinstance(error, errors.StoreLoginError) and not self._has_answered:
            # Who was never let in has more likely a slip in the URL than bad luck.
            raise error
        now = self._clock.monotonic()
        if self._since is None:
            self._since = now
            self._say(
                "the store does not answer; it is asked again for"
                f" {formats.format_duration(self._patience)}: {printable.line(str(error))}"
            )
        if now - self._since > self._patience.total_seconds():
            raise errors.StoreTimeoutError(str(error)) from error

    def _end(self) -> None:
        self._has_answered = True
        if self._since is not None:
            self._since = None
            self._say("the store answers again")
