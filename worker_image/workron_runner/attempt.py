"""One attempt in the runner: its command's process, captured output, and the steps of its end."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
from enum import StrEnum
from math import inf
from typing import Final

from workron_runner import event_loop, protocol
from workron_runner.protocol import Start
from workron_runner.workspace import Workspace

_CHUNK_BYTES: Final = 64 * 1024
_MAX_REMAINING_CHUNKS: Final = 16
"""A pipe holds at most 1 MiB, unless an administrator has raised that."""


class CapturedOutput:
    """Head and tail of a byte stream, exact, in at most `limit` bytes."""

    __slots__ = ("_head", "_limit", "_tail", "_total")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def add(self, data: bytes) -> None:
        """Append the next chunk."""
        self._total += len(data)
        head_space = self._limit // 2 - len(self._head)
        self._head += data[:head_space]
        self._tail += data[head_space:]
        # Trimmed by halves: trimming at every chunk would move the whole tail each time.
        if len(self._tail) > 2 * self._limit:
            del self._tail[: len(self._tail) - self._limit]

    def value(self) -> tuple[bytes, int]:
        """Return the captured bytes, and how many bytes of the stream are missing in them.

        A line between head and tail says if some are missing.
        """
        both = bytes(self._head + self._tail)
        if self._total <= self._limit:
            return both, 0
        omitted = self._total - self._limit
        line = b"\n[... of %d bytes in all, some are left out here ...]\n" % self._total
        tail_space = self._limit - len(self._head) - len(line)
        if tail_space > 0:
            return bytes(self._head + line + self._tail[-tail_space:]), omitted + len(line)
        return both[-self._limit :] if self._limit else b"", omitted


class EndCause(StrEnum):
    """Why a command ended."""

    EXIT = "exit"
    TIMEOUT = "timeout"
    KILL = "kill"
    DEADLINE = "deadline"
    MEMORY = "memory"


class AttemptProcess:
    """A started command, its output pipe and its pidfd."""

    __slots__ = (
        "_seconds", "captured", "cause", "claim", "code", "credit", "due_at", "grace",
        "is_streamed", "is_terminated", "limit_bytes", "outlives_deadline", "peak_bytes", "pid",
        "pidfd", "pipe", "start_seconds", "started_at", "tag", "workspace",
    )  # fmt: skip

    def __init__(self, request: Start, workspace: Workspace, pid: int, tag: int, pipe: int) -> None:
        self.claim = request.claim
        self.workspace = workspace
        self.pid = pid
        self.tag = tag
        self.pipe = pipe
        self.pidfd = os.pidfd_open(pid)
        self.due_at = inf
        """When it times out, or when its next signal is sent."""
        self.grace = request.grace
        self.outlives_deadline = request.outlives_deadline
        self.cause = EndCause.EXIT
        self.is_terminated = False
        """Whether SIGTERM was sent, so that SIGKILL is next."""
        self.peak_bytes = 0
        self.limit_bytes: int | None = None
        """The memory limit, if it was killed for that."""
        self.captured = CapturedOutput(request.output_limit_bytes)
        self.credit = request.window_bytes
        """How many more bytes of output may be sent to the agent."""
        self.is_streamed = request.window_bytes > 0
        self.started_at = event_loop.boottime()
        self.start_seconds = 0.0
        self._seconds = 0.0
        self.code = 0
        """Exit code once it has ended, or minus the number of the signal."""

    @property
    def has_exited(self) -> bool:
        """Whether the command has exited and waits to be reaped."""
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    @property
    def is_paused(self) -> bool:
        """Whether its output stays in the pipe until the agent grants more credit."""
        return self.is_streamed and self.credit <= 0

    def read(self) -> bytes | None:
        """Read the pipe once: b"" if it is empty now, None at its end."""
        try:
            data = os.read(self.pipe, _CHUNK_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            return None
        self.captured.add(data)
        self.credit -= len(data)
        return data

    def read_rest(self) -> bytes:
        """Read what the pipe still holds; no process is left to write more."""
        chunks = (self.read() or b"" for _ in range(_MAX_REMAINING_CHUNKS))
        return b"".join(itertools.takewhile(bool, chunks))

    def signal_group(self, number: signal.Signals) -> None:
        """Signal its process group, whose id is not reused before the command is reaped."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def reap(self) -> bool:
        """Reap the command; False if it still runs."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if not pid:
            return False
        self.peak_bytes = max(self.peak_bytes, usage.ru_maxrss * 1024)
        self.code = os.waitstatus_to_exitcode(status)
        self._seconds = event_loop.boottime() - self.started_at
        return True

    def ended(self, omitted_bytes: int, result_error: str | None) -> protocol.Ended:
        """Return the message about its end."""
        return protocol.Ended(
            claim=self.claim,
            cause=self.cause,
            exit_code=self.code if self.code >= 0 else None,
            signal=-self.code if self.code < 0 else None,
            seconds=self._seconds,
            start_seconds=self.start_seconds,
            peak_bytes=self.peak_bytes,
            omitted_bytes=omitted_bytes,
            result_error=result_error,
            limit_bytes=self.limit_bytes if self.cause is EndCause.MEMORY else None,
        )

    def close(self) -> None:
        """Close its descriptors."""
        os.close(self.pipe)
        os.close(self.pidfd)
