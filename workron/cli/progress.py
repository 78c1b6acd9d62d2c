"""Progress of `workron run`: what the store says about its runs, and what changed since last time.

`RunFeed` reads the runs at a pace that costs little of the store's time, and makes a `RunSnapshot`
of them. `progress_table` and `progress_lines` show it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from workron.core import printable
from workron.core.plan import Kind
from workron.core.states import TERMINAL_STATES, State
from workron.scheduling import job_view

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from workron.core.clock import Clock
    from workron.core.ids import JobId
    from workron.scheduling.job_view import RunTime
    from workron.store.api import ReadStore
    from workron.store.types import AttemptRow, JobRow, RunRow


_MIN_PAUSE_SECONDS: Final = 0.25
"""The terminal is refreshed no more often."""
_PAUSE_FACTOR: Final = 10
"""The pause between reads, as a multiple of the time of a read."""


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """One run and its jobs."""

    run: RunRow
    rows: Sequence[JobRow]

    @property
    def row(self) -> JobRow:
        """The row of the run itself."""
        return self.rows[0]

    @property
    def commands(self) -> Sequence[JobRow]:
        """The rows that are commands and not groups."""
        return [row for row in self.rows if row.kind is Kind.JOB]

    @property
    def ended(self) -> int:
        """Number of commands that have ended."""
        return sum(row.state in TERMINAL_STATES for row in self.commands)


class FailureDetail(NamedTuple):
    """The last failed attempt of a job, whose row has neither its exit code nor its output."""

    attempt: AttemptRow | None
    output: bytes
    """The end of its output."""
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """All runs at one moment, and what changed since the last snapshot."""

    runs: Sequence[ObservedRun]
    ended: Sequence[tuple[RunRow, JobRow]]
    """Commands that have ended since, in the order of their ends."""
    failing: Sequence[tuple[RunRow, JobRow]]
    """Commands that have failed since and will be retried."""
    times: Mapping[JobId, RunTime] = field(default_factory=dict)
    """Time of the last attempt of each command in `ended`."""
    begins: Mapping[tuple[JobId, int], datetime] = field(default_factory=dict)
    """When attempts after the first one of a job were first seen running."""
    details: Mapping[JobId, FailureDetail] = field(default_factory=dict)
    """Details of the new failures, for the first ones of a run."""

    def time(self, row: JobRow) -> RunTime:
        """Return how long the last attempt took, as far as known."""
        return self.times.get(row.job) or job_view.run_time(row)

    def began(self, row: JobRow) -> datetime | None:
        """Return when the running attempt began, as far as known."""
        if job_view.has_run_time(row):
            return row.started_at
        return self.begins.get((row.job, row.attempts))


@dataclass(slots=True)
class RunFeed:
    """Reads the progress of some runs from a store."""

    reader: ReadStore
    clock: Clock
    runs: Sequence[RunRow]
    max_details: int = 20
    """How many failures get a `FailureDetail`, which takes three more reads each."""
    pause_seconds: float = _MIN_PAUSE_SECONDS
    """How long to wait before the next read."""
    _observed: dict[JobId, ObservedRun] = field(default_factory=dict)
    _begins: dict[tuple[JobId, int], datetime] = field(default_factory=dict)
    _detailed: int = 0

    @property
    def ended(self) -> int:
        """Number of commands that had ended at the last read."""
        return sum(one.ended for one in self._observed.values())

    async def start_from(self, run: RunRow) -> ObservedRun:
        """Read a run that exists already; what has happened to it so far is not reported."""
        observed = ObservedRun(run, await self.reader.list_jobs(run.run))
        self._observed[run.run] = observed
        return observed

    async def read(self) -> RunSnapshot:
        """Read all runs; after a failed read, the next one reports its changes."""
        began = self.clock.monotonic()
        observed = await self._read_runs()
        ended, failing = self._changes(observed)
        times = await job_view.run_times(self.reader, [row for _, row in ended])
        failed = [row for _, row in ended if row.state is State.FAILED]
        details = await self._read_details([*failed, *(row for _, row in failing)])
        self._observed = {one.run.run: one for one in observed}
        self._detailed += len(details)
        self._record_starts()
        cost = self.clock.monotonic() - began
        self.pause_seconds = max(_MIN_PAUSE_SECONDS, _PAUSE_FACTOR * cost)
        return RunSnapshot(observed, ended, failing, times, self._begins, details)

    async def _read_runs(self) -> list[ObservedRun]:
        observed = []
        for run in self.runs:
            one = self._observed.get(run.run)
            if one is None or one.row.state not in TERMINAL_STATES:
                one = ObservedRun(run, await self.reader.list_jobs(run.run))
            observed.append(one)
        return observed

    def _changes(
        self, observed: Iterable[ObservedRun]
    ) -> tuple[list[tuple[RunRow, JobRow]], list[tuple[RunRow, JobRow]]]:
        ended: list[tuple[RunRow, JobRow]] = []
        failing: list[tuple[RunRow, JobRow]] = []
        for now in observed:
            before = self._observed.get(now.run.run)
            if now is before:
                continue
            earlier = {} if before is None else {row.job: row for row in before.rows}
            for row in now.commands:
                old = earlier.get(row.job)
                if row.state in TERMINAL_STATES:
                    if old is None or old.state not in TERMINAL_STATES:
                        ended.append((now.run, row))
                elif row.failures > (old.failures if old else 0):
                    failing.append((now.run, row))
        ended.sort(key=_finished)
        return ended, failing

    async def _read_details(self, rows: Sequence[JobRow]) -> dict[JobId, FailureDetail]:
        wanted = rows[: max(0, self.max_details - self._detailed)]
        found = await asyncio.gather(*(self._read_detail(row) for row in wanted))
        return {row.job: detail for row, detail in zip(wanted, found, strict=True)}

    async def _read_detail(self, row: JobRow) -> FailureDetail:
        attempts = await self.reader.list_attempts(row.job)
        output = await self.reader.read_output(row.job, last=printable.READ_BYTES)
        spec = await self.reader.get_spec(row.job) or {}
        return FailureDetail(attempts[-1] if attempts else None, output, spec)

    def _record_starts(self) -> None:
        now = self.clock.now()
        for observed in self._observed.values():
            for row in observed.commands:
                if row.state is State.RUNNING and not job_view.has_run_time(row):
                    self._begins.setdefault((row.job, row.attempts), now)


def _finished(one: tuple[RunRow, JobRow]) -> tuple[float, JobId]:
    row = one[1]
    return (row.finished_at.timestamp() if row.finished_at else 0.0, row.job)
