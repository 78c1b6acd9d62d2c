"""The output of jobs as it comes: of a single job as it is, of several with a name on each line."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from itertools import cycle
from typing import TYPE_CHECKING, Final

from workron.cli import formatting, table
from workron.core.plan import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import Console

    from workron.cli.output_writer import OutputWriter
    from workron.cli.progress import RunSnapshot
    from workron.core.ids import JobId
    from workron.store.api import ReadStore
    from workron.store.types import ClaimedJob, JobRow, RunRow
    from workron_worker.executor import Acknowledge, OnOutput


_MAX_PADDING: Final = 30
"""Names up to this length are aligned."""
_MAX_LINE: Final = 64 * 1024
"""Bytes of a line that are kept until its end; a longer one is cut."""
_COLORS: Final = ("cyan", "magenta", "blue", "green", "yellow", "bright_black")
"""Each task has one of these; red is that of failures."""


class LiveOutput:
    """Prints the output of the jobs of some runs."""

    def __init__(self, writer: OutputWriter, console: Console, *, has_names: bool) -> None:
        """Create it; without `has_names` the output is printed as it is, up to the last byte."""
        self._writer = writer
        self._console = console
        self._has_names = has_names
        self._prefixes: dict[JobId, str] = {}
        self._open: dict[JobId, _Attempt] = {}
        self._printed: set[JobId] = set()

    def expect(self, run: RunRow, rows: Iterable[JobRow]) -> None:
        """Choose a prefix for each job of a run; output of other jobs is not printed."""
        commands = [row for row in rows if row.kind is Kind.JOB]
        if not self._has_names:
            self._prefixes |= {row.job: "" for row in commands}
            return
        paths = [formatting.job_path(run, row) for row in commands]
        width = min(_MAX_PADDING, max(map(len, paths), default=0))
        colors = dict(zip(dict.fromkeys(row.name for row in commands), cycle(_COLORS)))
        for path, row in zip(paths, commands, strict=True):
            color = colors[row.name]
            self._prefixes[row.job] = table.styled(self._console, f"{path:<{width}} | ", color)

    def listener(self, claimed: ClaimedJob) -> OnOutput | None:
        """Return what prints the output of an attempt; None if the job is not expected."""
        if claimed.job not in self._prefixes:
            return None
        self.end(claimed.job)
        self._printed.add(claimed.job)
        attempt = self._open[claimed.job] = self._attempt(claimed.job)
        loop = asyncio.get_running_loop()
        return functools.partial(self._print, attempt, loop)

    def _attempt(self, job: JobId) -> _Attempt:
        prefix = self._prefixes[job].encode()
        return _Attempt(prefix, is_terminal=self._writer.isatty())

    def _print(
        self, attempt: _Attempt, loop: asyncio.AbstractEventLoop,
        chunk: bytes, done: Acknowledge,
    ) -> None:  # fmt: skip
        # Acknowledged when it is written: a command waits for a slow reader, as in a pipe.
        count = len(chunk)
        acknowledge = functools.partial(_on_loop, loop, done, count)
        self._writer.write_output(attempt.feed(chunk), acknowledge)

    def end(self, job: JobId) -> None:
        """Print the last line of a job's attempt if it has no line feed."""
        attempt = self._open.pop(job, None)
        if attempt is not None and (rest := attempt.end()):
            self._writer.write_output(rest, lambda: None)

    async def complete(self, reader: ReadStore, snapshot: RunSnapshot) -> None:
        """Print the rest of the output of new ends, and all output of jobs that ran elsewhere."""
        for _, row in (*snapshot.ended, *snapshot.failing):
            self.end(row.job)
        for _, row in snapshot.ended:
            if row.attempts and row.job not in self._printed:
                attempt = self._attempt(row.job)
                output = attempt.feed(await reader.read_output(row.job)) + attempt.end()
                self._writer.write_output(output, lambda: None)
                self._printed.add(row.job)


def _on_loop(loop: asyncio.AbstractEventLoop, call: Callable[[int], None], count: int) -> None:
    # After the end of the loop no command waits.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(call, count)


class _Attempt:
    """The output of one attempt: as whole lines with a prefix, or unchanged."""

    def __init__(self, prefix: bytes, *, is_terminal: bool) -> None:
        self._prefix = prefix
        self._filter = formatting.TerminalFilter() if is_terminal else None
        self._line = bytearray()

    def feed(self, chunk: bytes) -> bytes:
        """Return what to print after this chunk."""
        return self._lines(self._filter.filter(chunk).encode() if self._filter else chunk)

    def end(self) -> bytes:
        """Return what to print when the attempt has ended."""
        text = self._lines(self._filter.end().encode()) if self._filter else b""
        if self._line:
            text += self._lines(b"\n")
        return text

    def _lines(self, data: bytes) -> bytes:
        if not self._prefix:
            return data
        self._line += data
        *lines, rest = self._line.split(b"\n")
        if len(rest) > _MAX_LINE:
            lines.append(rest)
            rest = bytearray()
        self._line = rest
        return b"".join(self._prefix + line + b"\n" for line in lines)
