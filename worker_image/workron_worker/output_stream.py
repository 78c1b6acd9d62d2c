"""Stores what a command writes while it runs, for jobs with `outputStreamBytes`.

The output is stored in chunks, in order, each retried until the store answers. While the store is
unavailable the command blocks on its full pipe, unless it has already written as much as is ever
streamed of it. The end of the attempt waits for its last chunk, up to the agent's store timeout.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, Self

import msgspec
import structlog

from workron import retry
from workron.core import errors
from workron.core.clock import Clock
from workron.core.ids import SessionKey
from workron.core.jobspec import OUTPUT_BYTES
from workron.store.types import ClaimRef, ReportResult
from workron_worker.claims import Disposition, RunningClaim
from workron_worker.config import AgentDependencies
from workron_worker.executor import WINDOW_BYTES, Acknowledge, CommandEnd, CommandTask, OnOutput
from workron_worker.runner_client import run_task
from workron_worker.store_retry import STORE_BACKOFF, StoreRetry

AppendOutput = Callable[[int, bytes], Awaitable[ReportResult]]


CHUNK_BYTES: Final = WINDOW_BYTES
"""A full window is one chunk, so that the command waits for that one only."""

_log = structlog.get_logger(__name__)
_PAUSE_SECONDS: Final = 1.0
_PAUSE_SHARE_OF_AGE: Final = 1 / 1024
"""Keeps an attempt that writes a line per second for a year below the limit on chunks; after a day
a line is stored within a minute and a half."""
_RELEASED_TIMEOUT: Final = timedelta(seconds=1)
"""For the last chunk of a command whose claim is released."""
_OMISSION_LINE: Final = b"\n[... of %d bytes in all, the last %d follow ...]\n"
_MAX_TAIL_BYTES: Final = OUTPUT_BYTES - 2 * len(_OMISSION_LINE)
"""Line and tail together fit into what a store accepts with a report."""


class StreamBuffer:
    """Holds output until it is stored: the first `limit` bytes of an attempt.

    It acknowledges bytes when they are stored, and those past the limit at once.
    """

    def __init__(self, limit: int, *, chunk_bytes: int, wake: Callable[[], None]) -> None:
        self._space = limit
        self._chunk_bytes = chunk_bytes
        self._wake = wake
        self._buffer = bytearray()
        self._unacknowledged = 0
        self._acknowledge: Acknowledge = lambda _: None

    @property
    def size(self) -> int:
        """How many bytes are buffered."""
        return len(self._buffer)

    def add(self, data: bytes, acknowledge: Acknowledge) -> None:
        """Buffer what fits; wake for the first bytes, and when a chunk is full."""
        before = len(self._buffer)
        part = data[: self._space]
        self._buffer += part
        self._space -= len(part)
        self._unacknowledged += len(data)
        self._acknowledge = acknowledge
        after = len(self._buffer)
        # Nothing is buffered past the limit, so the command need not wait for what is.
        if not self._space:
            self._acknowledge_all()
        if (after and not before) or before < self._chunk_bytes <= after:
            self._wake()

    def take_chunk(self) -> tuple[bytes, Callable[[], None]]:
        """Return the next chunk, and what to call when it is stored."""
        data = bytes(self._buffer[: self._chunk_bytes])
        del self._buffer[: self._chunk_bytes]
        count, acknowledge = self._take_unacknowledged(len(data)), self._acknowledge
        return data, lambda: acknowledge(count) if count else None

    def close(self) -> None:
        """Discard and acknowledge what is buffered and what will come."""
        self._space = 0
        self._buffer.clear()
        self._acknowledge_all()

    def _acknowledge_all(self) -> None:
        if count := self._take_unacknowledged(self._unacknowledged):
            self._acknowledge(count)

    def _take_unacknowledged(self, limit: int) -> int:
        count = min(limit, self._unacknowledged)
        self._unacknowledged -= count
        return count


def tee_output(*listeners: OnOutput) -> OnOutput:
    """Return a listener that passes output to all, and acknowledges what all have."""
    acknowledged = [0] * len(listeners)

    def listener_done(number: int, acknowledge: Acknowledge, count: int) -> None:
        before = min(acknowledged)
        acknowledged[number] += count
        if gained := min(acknowledged) - before:
            acknowledge(gained)

    def tee(data: bytes, acknowledge: Acknowledge) -> None:
        for number, listener in enumerate(listeners):
            listener(data, functools.partial(listener_done, number, acknowledge))

    return tee


def pause_seconds(age_seconds: float) -> float:
    """Return how long to gather output for the next chunk of an attempt of that age."""
    return max(_PAUSE_SECONDS, _PAUSE_SHARE_OF_AGE * age_seconds)


class OutputStream:
    """One attempt's output; stored by a task while the context is active."""

    def __init__(self, append: AppendOutput, *, limit: int, tail: int, clock: Clock) -> None:
        self._append = append
        self._clock = clock
        self._wakeup = asyncio.Event()
        self._buffer = StreamBuffer(limit, chunk_bytes=CHUNK_BYTES, wake=self._wakeup.set)
        self._tail = _Tail(tail)
        self._stored = 0
        self._is_certain = True
        """Whether it is known if the last chunk that was sent is stored."""
        self._is_ending = False
        self._began = self._next_chunk_at = clock.monotonic()

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._store())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def add(self, data: bytes, acknowledge: Acknowledge) -> None:
        """Receive what the command wrote."""
        self._tail.add(data)
        self._buffer.add(data, acknowledge)

    async def finish(self, within: asyncio.Timeout) -> None:
        """Store what is left, until the timeout; the command has ended."""
        self._is_ending = True
        self._wakeup.set()
        try:
            async with within:
                await self._task
        except TimeoutError:
            missing = self._tail.total - self._stored
            _log.warning("output not stored completely", missing_bytes=missing)

    def remaining_output(self, captured: bytes) -> bytes:
        """Return what has to follow the stored chunks; `captured` if there are none."""
        if self._is_certain:
            if self._stored == 0:
                return captured
            missing = self._tail.last(self._tail.total - self._stored)
            if self._stored + len(missing) == self._tail.total:
                return missing
        tail = self._tail.last(_MAX_TAIL_BYTES)
        return _OMISSION_LINE % (self._tail.total, len(tail)) + tail

    async def _store(self) -> None:
        number, is_current = 0, True
        try:
            while is_current and await self._wait_for_chunk():
                data, acknowledge = self._buffer.take_chunk()
                try:
                    is_current = await self._append_with_retry(number, data)
                finally:
                    acknowledge()
                number += 1
                self._stored += len(data) * is_current
        except errors.StoreError as error:
            _log.warning("output streaming stopped", error=str(error))
        finally:
            self._buffer.close()

    async def _wait_for_chunk(self) -> bool:
        """Wait until there is a chunk to store; False if there will be none."""
        while not self._is_ending and self._buffer.size < CHUNK_BYTES:
            left = self._next_chunk_at - self._clock.monotonic() if self._buffer.size else None
            if left is not None and left <= 0:
                break
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._wakeup.wait()
            self._wakeup.clear()
        now = self._clock.monotonic()
        self._next_chunk_at = now + pause_seconds(now - self._began)
        return self._buffer.size > 0

    async def _append_with_retry(self, number: int, data: bytes) -> bool:
        """Store a chunk; False if the claim was reaped."""
        failures: list[Exception] = []

        def failed(error: Exception, _: float) -> None:
            if not failures:
                _log.warning("store unavailable, output waits", error=str(error))
            failures.append(error)

        self._is_certain = False
        append = functools.partial(self._append, number, data)
        try:
            answer = await retry.retry(
                append, errors=errors.TRANSIENT, backoff=STORE_BACKOFF, on_retry=failed
            )
        except errors.StoreError:
            # A rejected chunk is not stored; an earlier call may have stored it.
            self._is_certain = not failures
            raise
        self._is_certain = True
        return answer is not ReportResult.STALE


class OutputStreams:
    """All streams of one agent."""

    def __init__(self, dependencies: AgentDependencies, store_retry: StoreRetry) -> None:
        self._dependencies = dependencies
        self._retry = store_retry
        # One chunk of an agent at a time: a worker has two connections, and two slow chunks would
        # block its claims and reports.
        self._append_lock = asyncio.Lock()

    async def run(
        self, key: SessionKey, running: RunningClaim, task: CommandTask, listener: OnOutput | None
    ) -> CommandEnd:
        """Run an attempt and store its output; the end has what must follow the chunks."""
        append = functools.partial(self._append, key, running.job.ref)
        limit, tail = task.stream_limit_bytes, task.output_limit_bytes
        clock = self._dependencies.clock
        async with OutputStream(append, limit=limit, tail=tail, clock=clock) as stream:
            on_output = tee_output(listener, stream.add) if listener else stream.add
            end = await run_task(self._dependencies.executor, task, on_output)
            is_own_end = running.disposition is Disposition.REPORT or not end.is_killed
            is_reported = is_own_end and not end.is_past_deadline
            wait = self._retry.limit if is_reported else _RELEASED_TIMEOUT
            timeout = asyncio.timeout(wait.total_seconds())
            with self._retry.shortens(timeout):
                await stream.finish(timeout)
            return msgspec.structs.replace(end, output=stream.remaining_output(end.output))

    async def _append(
        self, key: SessionKey, ref: ClaimRef, number: int, data: bytes
    ) -> ReportResult:
        async with self._append_lock:
            return await self._dependencies.store.append_output(key, ref, number, data)


class _Tail:
    """The last bytes of a stream."""

    __slots__ = ("_buffer", "_limit", "total")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Append the next bytes."""
        self.total += len(data)
        self._buffer += data[max(0, len(data) - self._limit) :]
        # Trimmed by halves: trimming at every call would move the whole buffer each time.
        if len(self._buffer) > 2 * self._limit:
            del self._buffer[: len(self._buffer) - self._limit]

    def last(self, count: int) -> bytes:
        """Return that many of the last bytes, or as many as there are."""
        return bytes(self._buffer[max(0, len(self._buffer) - min(count, self._limit)) :])
