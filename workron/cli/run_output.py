"""The output of all jobs of some runs, read from the store as they run or end.

Jobs with outputStreamBytes are read while they run, the others when an attempt has ended.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from workron.cli import formatting, system_clock
from workron.core.plan import Kind
from workron.core.states import State

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from workron.core.ids import JobId
    from workron.scheduling.wait import StoreOutage
    from workron.store.api import ReadStore
    from workron.store.types import JobRow, RunRow


_MIN_PAUSE_SECONDS: Final = 0.2
_PAUSE_FACTOR: Final = 4
_MAX_PADDING: Final = 30
"""Names up to this length are aligned."""


@dataclass(slots=True)
class _Position:
    """The end of the printed output of a job."""

    attempt: int = 1
    chunk: int = 0
    line: bytes = b""
    """The beginning of a line that has no line feed yet; without names, its last byte."""


@dataclass(slots=True)
class RunOutput:
    """Prints the output of runs; each line begins with the name of its job if there are several."""

    reader: ReadStore
    runs: Sequence[RunRow]
    write: Callable[[bytes], None]
    _prefixes: dict[JobId, bytes] = field(default_factory=dict)
    _streaming: set[JobId] = field(default_factory=set)
    _positions: dict[JobId, _Position] = field(default_factory=dict)

    async def print_until(self, ended: Awaitable[object], outage: StoreOutage) -> None:
        """Print output as it arrives, and all of it when the runs have ended."""
        waiting = asyncio.ensure_future(ended)
        try:
            await outage.retry(self._prepare)
            while not waiting.done():
                began = system_clock.CLOCK.monotonic()
                await outage.retry(self._print_new)
                cost = system_clock.CLOCK.monotonic() - began
                pause = max(_MIN_PAUSE_SECONDS, _PAUSE_FACTOR * cost)
                await asyncio.wait([waiting], timeout=pause)
            await waiting
            await outage.retry(self._print_new)
        finally:
            waiting.cancel()

    async def _prepare(self) -> None:
        commands: dict[JobId, str] = {}
        for run in self.runs:
            rows = await self.reader.list_jobs(run.run)
            commands |= {
                row.job: formatting.job_path(run, row) for row in rows if row.kind is Kind.JOB
            }
            specs = await self.reader.list_specs(run.run)
            self._streaming |= {job for job, spec in specs.items() if spec.get("outputStreamBytes")}
        self._prefixes = _prefixes(commands)

    async def _print_new(self) -> None:
        for run in self.runs:
            for row in await self.reader.list_jobs(run.run):
                if row.kind is Kind.JOB:
                    await self._print_job(row)

    async def _print_job(self, row: JobRow) -> None:
        at = self._positions.setdefault(row.job, _Position())
        while at.attempt <= row.attempts:
            has_ended = at.attempt < row.attempts or row.state is not State.RUNNING
            if has_ended or row.job in self._streaming:
                await self._print_chunks(row.job, at)
            if not has_ended:
                return
            if at.line:
                self._print_lines(row.job, at, b"\n")
            at.attempt, at.chunk = at.attempt + 1, 0

    async def _print_chunks(self, job: JobId, at: _Position) -> None:
        while chunks := await self.reader.read_output_chunks(job, at.attempt, at.chunk):
            for one in chunks:
                self._print_lines(job, at, one.data)
                at.chunk = one.chunk + 1

    def _print_lines(self, job: JobId, at: _Position, data: bytes) -> None:
        prefix = self._prefixes[job]
        if not prefix:
            self.write(data)
            at.line = b"" if data.endswith(b"\n") else data[-1:]
            return
        *lines, at.line = (at.line + data).split(b"\n")
        self.write(b"".join(prefix + line + b"\n" for line in lines))


def _prefixes(names: Mapping[JobId, str]) -> dict[JobId, bytes]:
    """Return what each line of a job begins with: nothing if there is only one job."""
    if len(names) == 1:
        return dict.fromkeys(names, b"")
    width = min(_MAX_PADDING, max(map(len, names.values()), default=0))
    return {job: f"{name:<{width}} | ".encode() for job, name in names.items()}
