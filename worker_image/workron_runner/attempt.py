"""One command that runs: its pipe, what is kept of it, and the signals on the way to its end.

Called by `runner`, which waits for its descriptors and its terms.
"""

from __future__ import annotations

import contextlib
import os
import signal
from enum import StrEnum
from math import inf
from typing import TYPE_CHECKING, Final

from workron_runner import event_loop, protocol

if TYPE_CHECKING:
    from workron_runner.protocol import Run
    from workron_runner.workspace import Workspace


class KeptOutput:
    """Head and tail of a stream of bytes, exact, in at most `limit` bytes."""

    __slots__ = ("_head", "_limit", "_seen", "_tail")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self._seen = 0

    def add(self, data: bytes) -> None:
        """Take in the next piece."""
        self._seen += len(data)
        room = self._limit // 2 - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        # Cut seldom, by halves: cutting at every piece would move the whole tail each time.
        if len(self._tail) > 2 * self._limit:
            del self._tail[: len(self._tail) - self._limit]

    def value(self) -> bytes:
        """Give what is kept; where something is missing between head and tail, a line says so."""
        if self._seen <= self._limit:
            return bytes(self._head + self._tail)
        if (room := self._room()) > 0:
            return bytes(self._head + self._gap() + self._tail[-room:])
        return bytes(self._last(self._limit))

    @property
    def left_out(self) -> int:
        """How many bytes of the stream are missing in what is kept."""
        if self._seen <= self._limit:
            return 0
        gap = len(self._gap()) if self._room() > 0 else 0
        return self._seen - self._limit + gap

    def _gap(self) -> bytes:
        return b"\n[... of %d bytes in all, some are left out here ...]\n" % self._seen

    def _room(self) -> int:
        return self._limit - len(self._head) - len(self._gap())

    def _last(self, count: int) -> bytearray:
        return (self._head + self._tail)[-count:] if count else bytearray()


_CHUNK_BYTES: Final = 64 * 1024
_REST_CHUNKS: Final = 16
"""A pipe of Linux holds at most 1 MiB, unless an administrator has raised that."""


class Because(StrEnum):
    """What brought an end about."""

    ITSELF = "itself"
    TIMEOUT = "timeout"
    KILL = "kill"
    DEADLINE = "deadline"
    MEMORY = "memory"


class Attempt:
    """A command and all that came of it."""

    __slots__ = (
        "_credit", "_kept", "_seconds", "because", "begun", "claim", "code", "exit", "grace",
        "is_streamed", "is_told", "limit_bytes", "mark", "outlives_deadline", "peak_bytes", "pid",
        "pipe", "place", "start_seconds", "term", "uid",
    )  # fmt: skip

    def __init__(self, order: Run, place: Workspace, pid: int, mark: int, pipe: int) -> None:
        self.claim = order.claim
        self.place = place
        self.uid = place.uid
        self.pid = pid
        self.mark = mark
        self.pipe = pipe
        self.exit = os.pidfd_open(pid)
        self.term = event_loop.Timer()
        self.grace = order.grace
        self.outlives_deadline = order.outlives_deadline
        self.because = Because.ITSELF
        self.is_told = False
        """Whether TERM was sent, so that KILL is next."""
        self.peak_bytes = 0
        self.limit_bytes: int | None = None
        """Of memory, if that is what it was ended for."""
        self._kept = KeptOutput(order.output_bytes)
        self._credit = order.window
        self.is_streamed = order.window > 0
        self.begun = event_loop.clock_now()
        self.start_seconds = 0.0
        self._seconds = 0.0
        self.code = 0
        """Its exit code when it has ended, or the signal's number below zero."""

    @property
    def has_ended(self) -> bool:
        """Whether its command is dead, which nobody has dealt with yet."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    @property
    def is_paused(self) -> bool:
        """Whether its output has to wait in the pipe until the agent has dealt with some of it."""
        return self.is_streamed and self._credit <= 0

    def add_credit(self, count: int) -> None:
        """Let more of its output go to the agent."""
        self._credit += count

    def read(self) -> bytes | None:
        """Read its output once: nothing, if there is none now; None at the end of the pipe."""
        try:
            data = os.read(self.pipe, _CHUNK_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            return None
        self._kept.add(data)
        self._credit -= len(data)
        return data

    def read_rest(self) -> bytes:
        """Read what the pipe still holds; it is no more, as nobody is left to write to it."""
        rest = bytearray()
        for _ in range(_REST_CHUNKS):
            data = self.read()
            if not data:
                break
            rest += data
        return bytes(rest)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its group; the number is its own until the command is reaped."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def step(self) -> float:
        """Send the next signal of an end that has begun; give the seconds until the one after."""
        if self.is_told or self.grace <= 0:
            self.signal(signal.SIGKILL)
            return inf
        self.is_told = True
        self.signal(signal.SIGTERM)
        return self.grace

    def reap(self) -> bool:
        """Take the command's own status; False if it has not ended."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if not pid:
            return False
        self.peak_bytes = max(self.peak_bytes, usage.ru_maxrss * 1024)
        self.code = os.waitstatus_to_exitcode(status)
        self._seconds = event_loop.clock_now() - self.begun
        return True

    def ended(self, result_error: str | None) -> protocol.Ended:
        """Say how it ended."""
        code = self.code
        return protocol.Ended(
            claim=self.claim,
            because=self.because,
            exit_code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            seconds=self._seconds,
            start_seconds=self.start_seconds,
            peak_bytes=self.peak_bytes,
            left_out=self._kept.left_out,
            result_error=result_error,
            limit_bytes=self.limit_bytes if self.because is Because.MEMORY else None,
        )

    @property
    def kept(self) -> bytes:
        """Head and tail of its output."""
        return self._kept.value()

    def close(self) -> None:
        """Give its descriptors back."""
        os.close(self.pipe)
        os.close(self.exit)
