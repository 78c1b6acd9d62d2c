"""Stores what a command writes while it runs, for jobs that ask for it with `outputStreamBytes`.

Called by `loop`. Pieces are stored in order, one after the other, each again until the store has
answered: while it is away the command waits in its full pipe, but no longer than until it has
written as much as is stored of it at all. Its end waits for its last piece, as long as the agent
bears a store that is away.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Self

import msgspec
import structlog

from workron.core import errors
from workron.core.jobspec import OUTPUT_BYTES
from workron.store.types import ReportResult
from workron_worker import executor
from workron_worker.claims import Fate
from workron_worker.executor import WINDOW_BYTES
from workron_worker.store_calls import pauses

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from workron.core.clock import Clock
    from workron.core.ids import SessionKey
    from workron.store.types import ClaimRef
    from workron_worker.claims import RunningClaim
    from workron_worker.config import AgentDependencies
    from workron_worker.executor import CommandEnd, CommandTask, Done, OnOutput
    from workron_worker.store_calls import StoreRetry


def _nobody(_: int) -> None:
    """Stand for who waits for room before anything was heard."""


class StreamBuffer:
    """Takes in the first bytes of an attempt up to a limit, and lets the rest go at once."""

    def __init__(self, limit: int, *, full: int, ring: Callable[[], None]) -> None:
        self._room = limit
        self._full = full
        self._ring = ring
        self._waiting = bytearray()
        self._owed = 0
        self._done: Done = _nobody

    @property
    def waiting(self) -> int:
        """How many bytes are here."""
        return len(self._waiting)

    def hear(self, data: bytes, done: Done) -> None:
        """Take in what there is room for; rings for the first bytes, and when there are many."""
        before = len(self._waiting)
        part = data[: self._room]
        self._waiting += part
        self._room -= len(part)
        self._owed += len(data)
        self._done = done
        after = len(self._waiting)
        # Once there is no room nothing comes to wait here any more, so nobody waits for it.
        if not self._room:
            self._pay_all()
        if (after and not before) or before < self._full <= after:
            self._ring()

    def take(self) -> tuple[bytes, Callable[[], None]]:
        """Give what came first, and what is to be called when it is dealt with."""
        data = bytes(self._waiting[: self._full])
        del self._waiting[: self._full]
        paid, done = self._pay(len(data)), self._done
        return data, lambda: done(paid) if paid else None

    def close(self) -> None:
        """Let go of all that is here and of all that will come."""
        self._room = 0
        self._waiting.clear()
        self._pay_all()

    def _pay_all(self) -> None:
        if paid := self._pay(self._owed):
            self._done(paid)

    def _pay(self, most: int) -> int:
        paid = min(most, self._owed)
        self._owed -= paid
        return paid


def tee_output(one: OnOutput | None, other: OnOutput) -> OnOutput:
    """Give what hands on to both."""
    return other if one is None else _Both(one, other)


class _Both:
    def __init__(self, *ears: OnOutput) -> None:
        self._ears = ears
        self._dealt_with = [0] * len(ears)

    def __call__(self, data: bytes, done: Done) -> None:
        for at, ear in enumerate(self._ears):
            ear(data, functools.partial(self._deal, at, done))

    def _deal(self, at: int, done: Done, count: int) -> None:
        before = min(self._dealt_with)
        self._dealt_with[at] += count
        if gained := min(self._dealt_with) - before:
            done(gained)


if TYPE_CHECKING:
    Append = Callable[[int, bytes], Awaitable[ReportResult]]

PIECE_BYTES: Final = WINDOW_BYTES
"""A full window makes a piece: the command waits for that one only."""

_log = structlog.get_logger(__name__)
_PAUSE_SECONDS: Final = 1.0
_SHARE_OF_AGE: Final = 1 / 1024
"""A command that writes a line a second for a year must not come to more pieces than it may have;
who watches it after a day sees a line a minute and a half late."""
_FAREWELL: Final = timedelta(seconds=1)
"""For the last words of a command that is handed back."""
_LINE: Final = b"\n[... of %d bytes in all, the last %d follow ...]\n"
_MOST_TAIL: Final = OUTPUT_BYTES - 2 * len(_LINE)
"""The line and it together are not more than a store takes with an end."""


def pause_seconds(age_seconds: float) -> float:
    """Say how long after a piece of an attempt of that age the next one is gathered at least."""
    return max(_PAUSE_SECONDS, _SHARE_OF_AGE * age_seconds)


class OutputStream:
    """One attempt's output, on its way to the store while this is entered."""

    def __init__(self, append: Append, *, limit: int, tail: int, clock: Clock) -> None:
        self._append = append
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._bell = asyncio.Event()
        self._inbox = StreamBuffer(limit, full=PIECE_BYTES, ring=self._bell.set)
        self._tail = _Tail(tail)
        self._stored = 0
        self._is_sure = True
        """Whether it is known of the last piece that was sent if it is stored."""
        self._is_ending = False
        self._began = self._next_at = clock.monotonic()
        self._last_wait: asyncio.Timeout | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._store())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def hear(self, data: bytes, done: Done) -> None:
        """Take in what the command wrote."""
        self._tail.add(data)
        self._inbox.hear(data, done)

    async def finish(self, patience: timedelta) -> None:
        """Store what is left, for so long at most; all of it has been heard."""
        self._is_ending = True
        self._bell.set()
        self._last_wait = asyncio.timeout(patience.total_seconds())
        try:
            async with self._last_wait:
                await self._task
        except TimeoutError:
            _log.warning("output was not stored to its end", bytes=self._tail.seen - self._stored)
        finally:
            self._last_wait = None

    def hurry(self, patience: timedelta) -> None:
        """Let `finish` wait no longer than that."""
        wait = self._last_wait
        if wait is not None and not wait.expired() and (when := wait.when()) is not None:
            wait.reschedule(min(when, self._loop.time() + patience.total_seconds()))

    def rest(self, kept: bytes) -> bytes:
        """Give what has to follow the pieces that are stored; `kept` is for when there are none."""
        if self._is_sure:
            if self._stored == 0:
                return kept
            missing = self._tail.last(self._tail.seen - self._stored)
            if self._stored + len(missing) == self._tail.seen:
                return missing
        tail = self._tail.last(_MOST_TAIL)
        return _LINE % (self._tail.seen, len(tail)) + tail

    async def _store(self) -> None:
        number, is_current = 0, True
        try:
            while is_current and await self._gather():
                data, settle = self._inbox.take()
                try:
                    is_current = await self._insist(number, data)
                finally:
                    settle()
                number += 1
                self._stored += len(data) * is_current
        except errors.StoreError as error:
            _log.warning("output is not stored any more", error=str(error))
        finally:
            self._inbox.close()

    async def _gather(self) -> bool:
        """Wait until there is a piece to store; False if there will be none."""
        while not self._is_ending and self._inbox.waiting < PIECE_BYTES:
            left = self._next_at - self._clock.monotonic() if self._inbox.waiting else None
            if left is not None and left <= 0:
                break
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._bell.wait()
            self._bell.clear()
        now = self._clock.monotonic()
        self._next_at = now + pause_seconds(now - self._began)
        return self._inbox.waiting > 0

    async def _insist(self, number: int, data: bytes) -> bool:
        """Store a piece; False if the claim was taken back."""
        rests = pauses()
        while True:
            was_sure, self._is_sure = self._is_sure, False
            try:
                answer = await self._append(number, data)
            except errors.TRANSIENT as error:
                if was_sure:
                    _log.warning("output waits for the store", error=str(error))
            except errors.StoreError:
                # What was refused is not stored; what was sent before may be.
                self._is_sure = was_sure
                raise
            else:
                self._is_sure = True
                return answer is not ReportResult.STALE
            await asyncio.sleep(next(rests))


class OutputStreams:
    """All streams of one agent."""

    def __init__(self, around: AgentDependencies, patience: StoreRetry) -> None:
        self._around = around
        self._patience = patience
        # One piece of an agent at a time is on its way: a worker has two connections for its verbs,
        # and behind two slow pieces its claims and reports would wait.
        self._turn = asyncio.Lock()
        self._open: set[OutputStream] = set()

    async def run(
        self, key: SessionKey, running: RunningClaim, task: CommandTask, listener: OnOutput | None
    ) -> CommandEnd:
        """Run an attempt and store what it writes; its end says what has to follow that."""
        append = functools.partial(self._append, key, running.claimed.ref)
        limit, tail = task.stream_bytes, task.output_bytes
        async with OutputStream(append, limit=limit, tail=tail, clock=self._around.clock) as stream:
            self._open.add(stream)
            try:
                hear = tee_output(listener, stream.hear)
                ended = await executor.carry_out(self._around.executor, task, hear)
                is_own = running.fate is Fate.REPORT or not ended.is_killed
                is_reported = is_own and not ended.is_overdue
                await stream.finish(self._patience.limit if is_reported else _FAREWELL)
            finally:
                self._open.remove(stream)
            return msgspec.structs.replace(ended, output=stream.rest(ended.output))

    def hurry(self) -> None:
        """Bear a store that is away no longer than the agent does now."""
        for stream in self._open:
            stream.hurry(self._patience.limit)

    async def _append(
        self, key: SessionKey, right: ClaimRef, number: int, data: bytes
    ) -> ReportResult:
        async with self._turn:
            return await self._around.door.append_output(key, right, number, data)


class _Tail:
    """The last bytes of all that was heard."""

    __slots__ = ("_kept", "_limit", "seen")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.seen = 0

    def add(self, data: bytes) -> None:
        """Take in what comes next."""
        self.seen += len(data)
        self._kept += data[max(0, len(data) - self._limit) :]
        # Cut seldom: cutting at every piece would move the whole of it each time.
        if len(self._kept) > 2 * self._limit:
            del self._kept[: len(self._kept) - self._limit]

    def last(self, count: int) -> bytes:
        """Give so many of the last bytes, or as many as there are."""
        return bytes(self._kept[max(0, len(self._kept) - min(count, self._limit)) :])
