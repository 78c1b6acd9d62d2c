"""Looks at runs in the store again and again, and tells what is new since the look before.

Made by `run`, called by `performance`. What is shown is what the store says, whichever worker did
it. A look costs the more the more jobs there are, so it is taken the less often.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from workron.core import states
from workron.core.plan import Kind
from workron.scheduling import span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime

    from workron.core.ids import JobId
    from workron.core.ports import Clock
    from workron.scheduling.span import Span
    from workron.store.protocol import JobRow, ReaderDoor, RootRow

_SHORTEST_PAUSE_SECONDS: Final = 0.25
"""Nobody reads faster, and the terminal is drawn no more often."""
_SHARE: Final = 10
"""At most one part in so many of the time is spent with looking."""


@dataclass(frozen=True, slots=True)
class Run:
    """One root and its jobs as they stand."""

    root: RootRow
    rows: Sequence[JobRow]

    @property
    def row(self) -> JobRow:
        """The root's own row."""
        return self.rows[0]

    @property
    def total(self) -> int:
        """How many commands there are."""
        return sum(1 for _ in self.commands)

    @property
    def ended(self) -> int:
        """How many of them have ended."""
        return sum(row.state in states.ENDS for row in self.commands)

    @property
    def commands(self) -> Iterator[JobRow]:
        """The rows that are commands, not groups."""
        return (row for row in self.rows if row.kind is Kind.JOB)


@dataclass(frozen=True, slots=True)
class Look:
    """All runs at one moment, and what changed since the look before."""

    runs: Sequence[Run]
    ended: Sequence[tuple[RootRow, JobRow]]
    """Commands that have ended since, the first to end first."""
    failing: Sequence[tuple[RootRow, JobRow]]
    """Commands that have failed since and are tried again."""
    spans: Mapping[JobId, Span] = field(default_factory=dict)
    """How long the last attempt of each that has ended since took."""
    begins: Mapping[tuple[JobId, int], datetime] = field(default_factory=dict)
    """When attempts after a job's first one were first seen to run."""

    def span(self, row: JobRow) -> Span:
        """Tell how long what has ended of a job took, as far as that is known."""
        return self.spans.get(row.job) or span.of_row(row)

    def began(self, row: JobRow) -> datetime | None:
        """Tell when what runs of a job began, as far as that is known."""
        if span.is_told(row):
            return row.started_at
        return self.begins.get((row.job, row.attempts))


@dataclass(slots=True)
class Feed:
    """The looks at some runs."""

    reader: ReaderDoor
    clock: Clock
    roots: Sequence[RootRow]
    pause_seconds: float = _SHORTEST_PAUSE_SECONDS
    """How long to wait before the next look."""
    _runs: dict[JobId, Run] = field(default_factory=dict)
    _begins: dict[tuple[JobId, int], datetime] = field(default_factory=dict)

    @property
    def ended(self) -> int:
        """How many commands had ended at the newest look."""
        return sum(run.ended for run in self._runs.values())

    async def pass_over(self, root: RootRow) -> Run:
        """See how a root stands, and tell nothing of what has happened to it up to now."""
        run = self._runs[root.root] = Run(root, await self.reader.jobs(root.root))
        return run

    async def look(self) -> Look:
        """Take a look; one that fails is as if it had not been taken."""
        began = self.clock.monotonic()
        runs = dict(self._runs)
        ended: list[tuple[RootRow, JobRow]] = []
        failing: list[tuple[RootRow, JobRow]] = []
        for root in self.roots:
            before = self._runs.get(root.root)
            if before is not None and before.row.state in states.ENDS:
                continue
            run = runs[root.root] = Run(root, await self.reader.jobs(root.root))
            earlier = {} if before is None else {row.job: row for row in before.rows}
            ended += ((root, row) for row in run.commands if _has_ended(earlier, row))
            failing += ((root, row) for row in run.commands if _has_failed(earlier, row))
        ended.sort(key=_finished)
        spans = await span.each(self.reader, [row for _, row in ended])
        self._runs = runs
        self._see_begins()
        cost = self.clock.monotonic() - began
        self.pause_seconds = max(_SHORTEST_PAUSE_SECONDS, _SHARE * cost)
        found = [runs[root.root] for root in self.roots]
        return Look(found, ended, failing, spans, self._begins)

    def _see_begins(self) -> None:
        now = self.clock.now()
        for run in self._runs.values():
            for row in run.commands:
                if row.state is states.State.RUNNING and not span.is_told(row):
                    self._begins.setdefault((row.job, row.attempts), now)


def _has_ended(earlier: Mapping[JobId, JobRow], row: JobRow) -> bool:
    before = earlier.get(row.job)
    return row.state in states.ENDS and (before is None or before.state not in states.ENDS)


def _has_failed(earlier: Mapping[JobId, JobRow], row: JobRow) -> bool:
    before = earlier.get(row.job)
    failures = 0 if before is None else before.failures
    return row.state not in states.ENDS and row.failures > failures


def _finished(one: tuple[RootRow, JobRow]) -> tuple[float, JobId]:
    row = one[1]
    return (row.finished_at.timestamp() if row.finished_at else 0.0, row.job)
