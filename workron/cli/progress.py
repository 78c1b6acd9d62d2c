"""Progress of `workron run`: snapshots of the runs, and how they are shown.

`RunFeed` reads the runs from the store and says what changed since the last read. `ProgressTable`
shows that on a terminal as one table that stays in place: a line for each task, with counts for
arrays, and below it the jobs that run or wait for a retry. Tasks that do not fit are summed up in
one line; active ones are shown first. `ProgressLines` prints a line for each job that ends.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from workron.cli import formatting
from workron.core.plan import Kind
from workron.core.states import TERMINAL_STATES, Reason, State
from workron.scheduling import job_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
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


class TaskCounts(NamedTuple):
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

    def __exit__(self, *_: object) -> None:
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
        commands = [(one.run, row) for one in self._snapshot.runs for row in one.commands]
        active = [pair for pair in commands if pair[1].state is State.RUNNING]
        active += [pair for pair in commands if pair[1].reason is Reason.BACKOFF]
        height = max(2, self._console.height - _FRAME_LINES)
        shown = active[: min(_MAX_ACTIVE, height // 2)]
        tasks = list(_tasks(self._snapshot.runs))
        return Group(
            self._heading(tasks),
            Text(),
            _table(tasks, height - len(shown), self._console.width),
            Text(),
            *(self._active_job(run, row, self._snapshot.began(row)) for run, row in shown),
            *(_one_line((note, "yellow")) for note in self._notes[-2:]),
        )

    def _heading(self, tasks: Sequence[TaskCounts]) -> Text:
        counts = _sum(tasks)
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

    def _active_job(self, run: RunRow, row: JobRow, began: datetime | None) -> Text:
        now = self._clock.now()
        path = formatting.job_path(run, row)
        if row.reason is Reason.BACKOFF:
            left = formatting.seconds(_seconds_between(now, row.due))
            note = f"  {formatting.failures(row)}, retry in {left}"
            return _one_line(("↻ ", "yellow"), path, (note, "dim"))
        elapsed = formatting.seconds(_seconds_between(began, now))
        command = formatting.command(self._specs.get(row.job, {}))
        return _one_line(("▸ ", "cyan"), path, (f"  {elapsed}  ", "dim"), (command, "dim"))


def _one_line(*parts: str | tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _seconds_between(first: datetime | None, last: datetime | None) -> float:
    return max(0.0, (last - first).total_seconds()) if first and last else 0.0


def _tasks(runs: Sequence[ObservedRun]) -> Iterator[TaskCounts]:
    for observed in runs:
        if observed.run.kind is not Kind.WORKFLOW:
            yield TaskCounts(observed.run.name, Counter([_column(observed.row)]))
            continue
        counts: dict[str, Counter[State]] = {}
        for row in observed.commands:
            counts.setdefault(row.name, Counter())[_column(row)] += 1
        prefix = "" if len(runs) == 1 else f"{observed.run.name}/"
        yield from (TaskCounts(prefix + name, one) for name, one in counts.items())


def _column(row: JobRow) -> State:
    """Return the column of a job; queued jobs count as waiting."""
    return State.WAITING if row.state is State.QUEUED else row.state


def _sum(tasks: Iterable[TaskCounts]) -> Counter[State]:
    return sum((task.counts for task in tasks), Counter())


def _table(tasks: Sequence[TaskCounts], height: int, width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    total = _sum(tasks)
    columns = [*_STEADY, *(state for state in _EXCEPTIONAL if total[state])]
    # Names are cut to fit, and headings are not.
    widths = [max(len(state), len(f"{total[state]:,}")) for state in columns]
    left = width - sum(widths) - _GAP * (len(widths) + 1)
    table.add_column("", no_wrap=True, overflow="ellipsis", min_width=12, max_width=max(12, left))
    for state in columns:
        table.add_column(state.lower(), justify="right", header_style="dim", no_wrap=True)
    shown = set(map(id, sorted(tasks, key=lambda task: task.urgency)[:height]))
    for task in tasks:
        if id(task) in shown:
            table.add_row(task.name, *(_cell(task.counts, state) for state in columns))
    rest = [task for task in tasks if id(task) not in shown]
    if rest:
        cells = (_cell(_sum(rest), state) for state in columns)
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
        self.say = write

    def show(self, snapshot: RunSnapshot) -> None:
        """Print a line for each job that ended, or that failed and will be retried."""
        lines = [_ended(run, row, snapshot.time(row).seconds) for run, row in snapshot.ended]
        # Retries come after ends: an upstream job of a failing one may have just ended.
        lines += [
            f"{'Retrying':<9}  {formatting.job_path(run, row)}  {formatting.failures(row)}"
            for run, row in snapshot.failing
        ]
        if lines:
            self.say("\n".join(lines))


def _ended(run: RunRow, row: JobRow, seconds: float | None) -> str:
    took = "" if seconds is None else formatting.seconds(seconds)
    parts = (f"{row.state:<9}", formatting.job_path(run, row), took, formatting.reason(row))
    return "  ".join(filter(None, parts))


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
    pause_seconds: float = _MIN_PAUSE_SECONDS
    """How long to wait before the next read."""
    _observed: dict[JobId, ObservedRun] = field(default_factory=dict)
    _begins: dict[tuple[JobId, int], datetime] = field(default_factory=dict)

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
        observed = dict(self._observed)
        ended: list[tuple[RunRow, JobRow]] = []
        failing: list[tuple[RunRow, JobRow]] = []
        for run in self.runs:
            before = self._observed.get(run.run)
            if before is not None and before.row.state in TERMINAL_STATES:
                continue
            now = observed[run.run] = ObservedRun(run, await self.reader.list_jobs(run.run))
            earlier = {} if before is None else {row.job: row for row in before.rows}
            for row in now.commands:
                old = earlier.get(row.job)
                if row.state in TERMINAL_STATES:
                    if old is None or old.state not in TERMINAL_STATES:
                        ended.append((run, row))
                elif row.failures > (old.failures if old else 0):
                    failing.append((run, row))
        ended.sort(key=_finished)
        times = await job_view.run_times(self.reader, [row for _, row in ended])
        self._observed = observed
        self._record_starts()
        cost = self.clock.monotonic() - began
        self.pause_seconds = max(_MIN_PAUSE_SECONDS, _PAUSE_FACTOR * cost)
        return RunSnapshot(
            [observed[run.run] for run in self.runs], ended, failing, times, self._begins
        )

    def _record_starts(self) -> None:
        now = self.clock.now()
        for observed in self._observed.values():
            for row in observed.commands:
                if row.state is State.RUNNING and not job_view.has_run_time(row):
                    self._begins.setdefault((row.job, row.attempts), now)


def _finished(one: tuple[RunRow, JobRow]) -> tuple[float, JobId]:
    row = one[1]
    return (row.finished_at.timestamp() if row.finished_at else 0.0, row.job)
