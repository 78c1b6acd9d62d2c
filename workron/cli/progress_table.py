"""Progress as a table that stays at the end of a terminal, with failures printed above it.

The table has a line for each task, with counts for arrays, and below it the jobs that run or wait
for a retry. Tasks that do not fit are summed up in one line; active ones are shown first. A narrow
terminal gets short headings. States differ by their glyphs and not only by their colors.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from workron.cli import formatting, progress_lines
from workron.core.plan import Kind
from workron.core.states import TERMINAL_STATES, Reason, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime
    from typing import Any, Self

    from rich.console import Console, RenderableType

    from workron.cli.progress import ObservedRun, RunSnapshot
    from workron.core.clock import Clock
    from workron.core.ids import JobId
    from workron.store.types import JobRow


_MAX_BAR_CELLS: Final = 40
_GAP: Final = 2
_MAX_ACTIVE: Final = 8
_FRAME_LINES: Final = 8
"""Heading, column names, the line of other tasks, blank lines, two messages, the prompt."""
_REFRESHES_PER_SECOND: Final = 4
_MAX_FAILURE_LINES: Final = 200
"""More failures are only counted: they would push everything else out of the terminal."""

_STEADY: Final = (State.SUCCEEDED, State.RUNNING, State.WAITING)
"""Columns that are always shown, so that the table does not jump; others appear when needed."""
_EXCEPTIONAL: Final = (State.FAILED, State.SKIPPED, State.CANCELLED)
_URGENCY: Final = (State.RUNNING, State.FAILED, State.WAITING)
_MIN_NAME: Final = 12
_NARROW: Final = 60
_SHORT_TITLES: Final = {
    State.SUCCEEDED: "ok",
    State.RUNNING: "run",
    State.WAITING: "wait",
    State.FAILED: "fail",
    State.SKIPPED: "skip",
    State.CANCELLED: "canc",
}
"""Headings on a terminal with fewer than `_NARROW` columns."""
_GLYPHS: Final = {
    State.SUCCEEDED: "━",
    State.FAILED: "✗",
    State.SKIPPED: "╌",
    State.CANCELLED: "╌",
    State.RUNNING: "▸",
    State.WAITING: "·",
}
"""The parts of the bar, in this order."""


class TaskCounts(NamedTuple):
    """One line of the table: a task of a workflow, or a Job."""

    name: str
    counts: Counter[State]

    @property
    def urgency(self) -> int:
        """Sort key: tasks with a lower one are shown first when not all fit."""
        return next((at for at, state in enumerate(_URGENCY) if self.counts[state]), len(_URGENCY))


class ActiveJob(NamedTuple):
    """A job that runs, or that waits for a retry."""

    path: str
    row: JobRow
    began: datetime | None


class ProgressTable:
    """The live display."""

    def __init__(
        self, console: Console, clock: Clock, specs: Mapping[JobId, Mapping[str, Any]]
    ) -> None:
        self._console = console
        self._clock = clock
        self._specs = specs
        self._began = clock.monotonic()
        self._tasks: Sequence[TaskCounts] | None = None
        self._total: Counter[State] = Counter()
        self._active: Sequence[ActiveJob] = ()
        # A snapshot is drawn many times, and counting thousands of tasks takes milliseconds.
        self._drawn: tuple[tuple[int, int], Table] | None = None
        self._failure_lines = 0
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
        """Show a new snapshot, and print its failures above the table."""
        self._active = list(_active(snapshot))
        self._tasks = list(_tasks(snapshot.runs))
        self._total = _sum(self._tasks)
        self._drawn = None
        # Last, because printing draws the table again.
        self._print_failures(snapshot)

    def say(self, text: str) -> None:
        """Show a message about the run itself, below the table."""
        self._notes.append(text)

    def _print_failures(self, snapshot: RunSnapshot) -> None:
        lines = [*progress_lines.ends(snapshot, states=frozenset({State.FAILED}))]
        lines += progress_lines.retries(snapshot)
        room = _MAX_FAILURE_LINES - self._failure_lines
        self._failure_lines += len(lines)
        if 0 <= room < len(lines):
            lines[room:] = [Text("More failures are counted in the table.", style="yellow")]
        if room >= 0 and lines:
            self._console.print(Text("\n").join(lines), soft_wrap=True)

    def _render(self) -> RenderableType:
        if self._tasks is None:
            return Text("starting", style="dim")
        height = max(2, self._console.height - _FRAME_LINES)
        shown = self._active[: min(_MAX_ACTIVE, height // 2)]
        return Group(
            self._heading(),
            Text(),
            self._table(self._tasks, height - len(shown)),
            Text(),
            *map(self._active_job, shown),
            *(_one_line((note, "yellow")) for note in self._notes[-2:]),
        )

    def _table(self, tasks: Sequence[TaskCounts], height: int) -> Table:
        size = (height, self._console.width)
        if self._drawn is None or self._drawn[0] != size:
            self._drawn = size, _table(tasks, self._total, *size)
        return self._drawn[1]

    def _heading(self) -> Text:
        counts = self._total
        ended = sum(counts[state] for state in TERMINAL_STATES)
        elapsed = formatting.seconds(self._clock.monotonic() - self._began)
        failed = f", {counts[State.FAILED]:,} failed" if counts[State.FAILED] else ""
        text = Text.assemble(
            f"  {ended:,} of {counts.total():,} jobs{failed}  ", (elapsed, "dim"),
            no_wrap=True, overflow="ellipsis",
        )  # fmt: skip
        room = self._console.width - text.cell_len
        return progress_bar(counts, max(0, min(_MAX_BAR_CELLS, room))) + text

    def _active_job(self, job: ActiveJob) -> Text:
        now, row = self._clock.now(), job.row
        if row.reason is Reason.BACKOFF:
            left = formatting.seconds(_seconds_between(now, row.due))
            note = f"  {formatting.failures(row)}, retry in {left}"
            return _one_line(("↻ ", "yellow"), job.path, (note, "dim"))
        elapsed = formatting.seconds(_seconds_between(job.began, now))
        command = formatting.command(self._specs.get(row.job, {}))
        return _one_line(("▸ ", "cyan"), job.path, (f"  {elapsed}  ", "dim"), (command, "dim"))


def progress_bar(counts: Mapping[State, int], cells: int) -> Text:
    """Draw a bar with a share of the cells for each state, and at least one if it has a job."""
    present = [state for state in _GLYPHS if counts.get(state)]
    total = sum(counts[state] for state in present)
    shares = {state: max(1, round(cells * counts[state] / total)) for state in present}
    while shares and (excess := sum(shares.values()) - cells):
        largest = max(shares, key=lambda state: shares[state])
        shares[largest] -= max(-1, min(1, excess))
    return Text.assemble(
        *((_GLYPHS[state] * share, formatting.STATE_COLORS[state])
          for state, share in shares.items())
    )  # fmt: skip


def _one_line(*parts: str | tuple[str, str]) -> Text:
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def _seconds_between(first: datetime | None, last: datetime | None) -> float:
    return max(0.0, (last - first).total_seconds()) if first and last else 0.0


def _active(snapshot: RunSnapshot) -> Iterator[ActiveJob]:
    """Yield the jobs to list, running ones first; more are never shown."""
    commands = [(one.run, row) for one in snapshot.runs for row in one.commands]
    running = [pair for pair in commands if pair[1].state is State.RUNNING]
    failing = [pair for pair in commands if pair[1].reason is Reason.BACKOFF]
    for run, row in [*running, *failing][:_MAX_ACTIVE]:
        yield ActiveJob(formatting.job_path(run, row), row, snapshot.began(row))


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
    total: Counter[State] = Counter()
    for task in tasks:
        for state, count in task.counts.items():
            total[state] += count
    return total


def _table(tasks: Sequence[TaskCounts], total: Counter[State], height: int, width: int) -> Table:
    is_narrow = width < _NARROW
    gap = 1 if is_narrow else _GAP
    table = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0))
    columns = [*_STEADY, *(state for state in _EXCEPTIONAL if total[state])]
    titles = [_SHORT_TITLES[state] if is_narrow else state.lower() for state in columns]
    # Names are cut to fit, and headings are not.
    widths = [max(len(title), len(f"{total[state]:,}"))
              for title, state in zip(titles, columns, strict=True)]  # fmt: skip
    left = width - sum(widths) - gap * (len(widths) + 1)
    most = max(1 if is_narrow else _MIN_NAME, left)
    table.add_column(
        "", no_wrap=True, overflow="ellipsis", min_width=min(_MIN_NAME, most), max_width=most
    )
    for title in titles:
        table.add_column(title, justify="right", header_style="dim", no_wrap=True)
    _add_rows(table, tasks, columns, height)
    return table


def _add_rows(
    table: Table, tasks: Sequence[TaskCounts], columns: Sequence[State], height: int
) -> None:
    shown = set(map(id, sorted(tasks, key=lambda task: task.urgency)[:height]))
    for task in tasks:
        if id(task) in shown:
            table.add_row(task.name, *(_cell(task.counts, state) for state in columns))
    rest = [task for task in tasks if id(task) not in shown]
    if rest:
        counts = _sum(rest)
        cells = (_cell(counts, state) for state in columns)
        table.add_row(Text(f"{len(rest):,} more", style="dim"), *cells)


def _cell(counts: Counter[State], state: State) -> Text:
    count = counts[state]
    return Text(
        f"{count:,}" if count else "·", style=formatting.STATE_COLORS[state] if count else "dim"
    )
