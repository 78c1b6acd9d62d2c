"""Progress of `workron run`: snapshots of the runs, and how they are shown.

`RunFeed` reads the runs from the store and says what changed since the last read. `ProgressTable`
shows that on a terminal as one table that stays in place: a line for each task, with counts for
arrays, and below it the jobs that run or wait for a retry. Tasks that do not fit are summed up in
one line; active ones are shown first. `ProgressLines` prints a line for each job that ends.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from workron.cli import formatting
from workron.core import states
from workron.core.plan import Kind
from workron.core.states import TERMINAL_STATES, Reason, State
from workron.scheduling import job_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime
    from types import TracebackType
    from typing import Any, Self

    from rich.console import Console, RenderableType

    from workron.core.clock import Clock
    from workron.core.ids import JobId
    from workron.scheduling.job_view import RunTime
    from workron.store.api import ReadStore
    from workron.store.types import JobRow, RunRow


_BAR_CELLS: Final = 24
_GAP: Final = 2
_MAX_ACTIVE: Final = 8
_FRAME_LINES: Final = 8
"""Heading, column names, the line of other tasks, blank lines, two messages, the prompt."""
_REFRESHES_PER_SECOND: Final = 4

_STEADY: Final = (State.SUCCEEDED, State.RUNNING, State.WAITING)
"""Columns that are always shown, so that the table does not jump; others appear when needed."""
_EXCEPTIONAL: Final = (State.FAILED, State.SKIPPED, State.CANCELLED)
_URGENCY: Final = (State.RUNNING, State.FAILED, State.WAITING)


@dataclass(frozen=True, slots=True)
class _Unit:
    """One line of the table: a task of a workflow, or a Job."""

    name: str
    counts: Counter[State]

    @property
    def urgency(self) -> int:
        """Sort key: tasks with a lower one are shown first when not all fit."""
        return next((at for at, state in enumerate(_URGENCY) if self.counts[state]), len(_URGENCY))


class ProgressTable:
    """The live display."""

    def __init__(
        self, console: Console, clock: Clock, specs: Mapping[JobId, Mapping[str, Any]]
    ) -> None:
        self._console = console
        self._clock = clock
        self._specs = specs
        self._began = clock.monotonic()
        self._snapshot: RunSnapshot | None = None
        self._notes: list[str] = []
        self._live = Live(
            console=console,
            get_renderable=self._render,
            refresh_per_second=_REFRESHES_PER_SECOND,
            transient=True,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def show(self, snapshot: RunSnapshot) -> None:
        """Show a new snapshot."""
        self._snapshot = snapshot

    def say(self, text: str) -> None:
        """Show a message about the run itself, below the table."""
        self._notes.append(text)

    def _render(self) -> RenderableType:
        if self._snapshot is None:
            return Text("starting", style="dim")
        runs = self._snapshot.runs
        active = [(run.root, row) for run in runs for row in run.commands if _is_running(row)]
        active += [(run.root, row) for run in runs for row in run.commands if _awaits_retry(row)]
        height = max(2, self._console.height - _FRAME_LINES)
        shown = active[: min(_MAX_ACTIVE, height // 2)]
        units = list(_units(runs))
        parts: list[RenderableType] = [
            self._heading(units),
            Text(),
            _table(units, height - len(shown), self._console.width),
            Text(),
        ]
        parts += [
            self._pause(root, row)
            if _awaits_retry(row)
            else self._command(root, row, self._snapshot.began(row))
            for root, row in shown
        ]
        parts += [
            Text(note, style="yellow", no_wrap=True, overflow="ellipsis")
            for note in self._notes[-2:]
        ]
        return Group(*parts)

    def _heading(self, units: Sequence[_Unit]) -> Text:
        counts = sum((unit.counts for unit in units), Counter[State]())
        total = counts.total()
        ended = sum(counts[state] for state in TERMINAL_STATES)
        full = round(_BAR_CELLS * ended / total) if total else _BAR_CELLS
        color = "red" if counts[State.FAILED] else "green"
        elapsed = formatting.seconds(self._clock.monotonic() - self._began)
        return Text.assemble(
            ("━" * full, color),
            ("━" * (_BAR_CELLS - full), "bright_black"),
            f"  {ended:,} of {total:,} jobs  ",
            (elapsed, "dim"),
        )

    def _command(self, root: RunRow, row: JobRow, since: datetime | None) -> Text:
        seconds = 0.0 if since is None else (self._clock.now() - since).total_seconds()
        return Text.assemble(
            ("▸ ", "cyan"),
            formatting.job_path(root, row),
            (f"  {formatting.seconds(max(0.0, seconds))}  ", "dim"),
            (formatting.command(self._specs.get(row.job, {})), "dim"),
            no_wrap=True,
            overflow="ellipsis",
        )

    def _pause(self, root: RunRow, row: JobRow) -> Text:
        seconds = 0.0 if row.due is None else (row.due - self._clock.now()).total_seconds()
        note = f"  {formatting.failures(row)}, retry in {formatting.seconds(max(0.0, seconds))}"
        path = formatting.job_path(root, row)
        return Text.assemble(
            ("↻ ", "yellow"), path, (note, "dim"), no_wrap=True, overflow="ellipsis"
        )


def _is_running(row: JobRow) -> bool:
    return row.state is State.RUNNING


def _awaits_retry(row: JobRow) -> bool:
    return row.reason is Reason.BACKOFF


def _column(row: JobRow) -> State:
    """The column of a job; queued jobs count as waiting."""
    return State.WAITING if row.state is State.QUEUED else row.state


def _units(runs: Sequence[ObservedRun]) -> Iterator[_Unit]:
    is_alone = len(runs) == 1
    for run in runs:
        if run.root.kind is not Kind.WORKFLOW:
            yield _Unit(run.root.name, Counter([_column(run.row)]))
            continue
        tasks: dict[str, Counter[State]] = {}
        for row in run.commands:
            tasks.setdefault(row.name, Counter())[_column(row)] += 1
        prefix = "" if is_alone else f"{run.root.name}/"
        yield from (_Unit(prefix + name, counts) for name, counts in tasks.items())


def _table(units: Sequence[_Unit], height: int, width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    total = sum((unit.counts for unit in units), Counter[State]())
    columns = [*_STEADY, *(state for state in _EXCEPTIONAL if total[state])]
    # Names are cut to fit, and headings are not.
    widths = [max(len(state), len(f"{total[state]:,}")) for state in columns]
    left = width - sum(widths) - _GAP * (len(widths) + 1)
    table.add_column("", no_wrap=True, overflow="ellipsis", min_width=12, max_width=max(12, left))
    for state in columns:
        table.add_column(state.lower(), justify="right", header_style="dim", no_wrap=True)
    shown = set(map(id, sorted(units, key=lambda unit: unit.urgency)[:height]))
    for unit in units:
        if id(unit) in shown:
            table.add_row(unit.name, *(_cell(unit.counts, state) for state in columns))
    rest = [unit for unit in units if id(unit) not in shown]
    if rest:
        counts = sum((unit.counts for unit in rest), Counter[State]())
        cells = (_cell(counts, state) for state in columns)
        table.add_row(Text(f"{len(rest):,} more", style="dim"), *cells)
    return table


def _cell(counts: Counter[State], state: State) -> Text:
    count = counts[state]
    return Text(
        f"{count:,}" if count else "·", style=formatting.STATE_COLORS[state] if count else "dim"
    )


class ProgressLines:
    """Prints a line for each change."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def show(self, snapshot: RunSnapshot) -> None:
        """Print a line for each job that ended, or that failed and will be retried."""
        lines = [_ended(root, row, snapshot.span(row).seconds) for root, row in snapshot.ended]
        # Retries come after ends: an upstream job of a failing one may have just ended.
        lines += [
            f"{'Retrying':<9}  {formatting.job_path(root, row)}  {formatting.failures(row)}"
            for root, row in snapshot.failing
        ]
        if lines:
            self._write("\n".join(lines))

    def say(self, text: str) -> None:
        """Print a message about the run itself."""
        self._write(text)


def _ended(root: RunRow, row: JobRow, seconds: float | None) -> str:
    parts = [f"{row.state:<9}", formatting.job_path(root, row)]
    parts += [] if seconds is None else [formatting.seconds(seconds)]
    parts += [formatting.reason(row)] if formatting.reason(row) else []
    return "  ".join(parts)


_MIN_PAUSE_SECONDS: Final = 0.25
"""The terminal is refreshed no more often."""
_PAUSE_FACTOR: Final = 10
"""The pause between reads, as a multiple of the time of a read."""


@dataclass(frozen=True, slots=True)
class ObservedRun:
    """One run and its jobs."""

    root: RunRow
    rows: Sequence[JobRow]

    @property
    def row(self) -> JobRow:
        """The row of the run itself."""
        return self.rows[0]

    @property
    def total(self) -> int:
        """Number of commands."""
        return sum(1 for _ in self.commands)

    @property
    def ended(self) -> int:
        """Number of commands that have ended."""
        return sum(row.state in states.TERMINAL_STATES for row in self.commands)

    @property
    def commands(self) -> Iterator[JobRow]:
        """The rows that are commands and not groups."""
        return (row for row in self.rows if row.kind is Kind.JOB)


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """All runs at one moment, and what changed since the last snapshot."""

    runs: Sequence[ObservedRun]
    ended: Sequence[tuple[RunRow, JobRow]]
    """Commands that have ended since, in the order of their ends."""
    failing: Sequence[tuple[RunRow, JobRow]]
    """Commands that have failed since and will be retried."""
    spans: Mapping[JobId, RunTime] = field(default_factory=dict)
    """Time of the last attempt of each command in `ended`."""
    begins: Mapping[tuple[JobId, int], datetime] = field(default_factory=dict)
    """When attempts after the first one of a job were first seen running."""

    def span(self, row: JobRow) -> RunTime:
        """Return how long the last attempt took, as far as known."""
        return self.spans.get(row.job) or job_view.run_time(row)

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
    roots: Sequence[RunRow]
    pause_seconds: float = _MIN_PAUSE_SECONDS
    """How long to wait before the next read."""
    _runs: dict[JobId, ObservedRun] = field(default_factory=dict)
    _begins: dict[tuple[JobId, int], datetime] = field(default_factory=dict)

    @property
    def ended(self) -> int:
        """Number of commands that had ended at the last read."""
        return sum(run.ended for run in self._runs.values())

    async def start_from(self, root: RunRow) -> ObservedRun:
        """Read a run that exists already; what has happened to it so far is not reported."""
        run = self._runs[root.run] = ObservedRun(root, await self.reader.list_jobs(root.run))
        return run

    async def read(self) -> RunSnapshot:
        """Read all runs; after a failed read, the next one reports its changes."""
        began = self.clock.monotonic()
        runs = dict(self._runs)
        ended: list[tuple[RunRow, JobRow]] = []
        failing: list[tuple[RunRow, JobRow]] = []
        for root in self.roots:
            before = self._runs.get(root.run)
            if before is not None and before.row.state in states.TERMINAL_STATES:
                continue
            run = runs[root.run] = ObservedRun(root, await self.reader.list_jobs(root.run))
            earlier = {} if before is None else {row.job: row for row in before.rows}
            ended += ((root, row) for row in run.commands if _has_ended(earlier, row))
            failing += ((root, row) for row in run.commands if _has_failed(earlier, row))
        ended.sort(key=_finished)
        spans = await job_view.run_times(self.reader, [row for _, row in ended])
        self._runs = runs
        self._record_starts()
        cost = self.clock.monotonic() - began
        self.pause_seconds = max(_MIN_PAUSE_SECONDS, _PAUSE_FACTOR * cost)
        found = [runs[root.run] for root in self.roots]
        return RunSnapshot(found, ended, failing, spans, self._begins)

    def _record_starts(self) -> None:
        now = self.clock.now()
        for run in self._runs.values():
            for row in run.commands:
                if row.state is states.State.RUNNING and not job_view.has_run_time(row):
                    self._begins.setdefault((row.job, row.attempts), now)


def _has_ended(earlier: Mapping[JobId, JobRow], row: JobRow) -> bool:
    before = earlier.get(row.job)
    return row.state in states.TERMINAL_STATES and (
        before is None or before.state not in states.TERMINAL_STATES
    )


def _has_failed(earlier: Mapping[JobId, JobRow], row: JobRow) -> bool:
    before = earlier.get(row.job)
    failures = 0 if before is None else before.failures
    return row.state not in states.TERMINAL_STATES and row.failures > failures


def _finished(one: tuple[RunRow, JobRow]) -> tuple[float, JobId]:
    row = one[1]
    return (row.finished_at.timestamp() if row.finished_at else 0.0, row.job)
