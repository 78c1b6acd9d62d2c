"""The tasks of ended runs as a table with a time line: when the jobs of each task ran.

`━` stands for a time in which a job of the task ran, and `✗` for one in which a job failed. The
table fits the width of the console: names are cut first, and the time line is left out last.
"""

from __future__ import annotations

import heapq
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from workron.cli import formatting
from workron.core.plan import Kind
from workron.core.states import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from workron.cli.progress import ObservedRun
    from workron.store.types import JobRow


_MAX_TASKS: Final = 30
_MAX_CELLS: Final = 60
_MIN_CELLS: Final = 12
_MIN_NAME: Final = 8
_GAP: Final = "  "
_RAN: Final = "━"
_FAILED: Final = "✗"
_NOTABLE: Final = (
    State.FAILED,
    State.CANCELLED,
    State.RUNNING,
    State.QUEUED,
    State.WAITING,
    State.SKIPPED,
    State.SUCCEEDED,
)
"""A task is described by the first of these states that one of its jobs has."""


class TimeSpan(NamedTuple):
    """From the first start to the last end of some jobs."""

    begin: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        """Length of the span."""
        return max(0.0, (self.end - self.begin).total_seconds())

    def cell(self, time: datetime, cells: int) -> int:
        """Return the cell of a time when the span is drawn with this many."""
        share = (time - self.begin).total_seconds() / (self.seconds or 1.0)
        return min(cells - 1, max(0, int(share * cells)))


class TaskLine(NamedTuple):
    """One line of the table."""

    name: str
    rows: Sequence[JobRow]

    @property
    def state(self) -> State:
        """The most notable state of the task's jobs."""
        states = {row.state for row in self.rows}
        return next(state for state in _NOTABLE if state in states)

    def state_text(self) -> str:
        """Format the state, with the number of jobs that have it if not all do."""
        count = Counter(row.state for row in self.rows)[self.state]
        return str(self.state) if count == len(self.rows) else f"{count:,} {self.state}"


class _Layout(NamedTuple):
    """The widths of the columns; no cells: the time line does not fit."""

    name: int
    jobs: int
    state: int
    took: int
    cells: int


def lines(runs: Sequence[ObservedRun], width: int) -> Iterator[Text]:
    """Yield the lines of the table, its titles first."""
    tasks = list(_tasks(runs))
    shown = _most_notable(tasks)
    whole = _span([row for task in tasks for row in task.rows])
    titles = ("task", "jobs", "state", "took")
    columns = [_columns(task) for task in shown]
    layout = _layout([titles, *columns], width if whole else 0)
    title = _line(titles, layout, "")
    if whole and layout.cells:
        title.append(_axis(whole, layout.cells))
    title.rstrip()
    title.stylize("dim")
    yield title
    for task, column in zip(shown, columns, strict=True):
        line = _line(column, layout, formatting.STATE_COLORS[task.state])
        if whole and layout.cells:
            line.append(_time_line(task, whole, layout.cells))
        line.rstrip()
        yield line
    if len(shown) < len(tasks):
        yield Text(f"{len(tasks) - len(shown):,} more tasks", style="dim")


def _tasks(runs: Sequence[ObservedRun]) -> Iterator[TaskLine]:
    for observed in runs:
        if observed.run.kind is not Kind.WORKFLOW:
            yield TaskLine(observed.run.name, [observed.row])
            continue
        rows: dict[str, list[JobRow]] = {}
        for row in observed.commands:
            rows.setdefault(row.name, []).append(row)
        prefix = "" if len(runs) == 1 else f"{observed.run.name}/"
        yield from (TaskLine(prefix + name, one) for name, one in rows.items())


def _most_notable(tasks: Sequence[TaskLine]) -> Sequence[TaskLine]:
    """Return the tasks to show, in their order: those that did not succeed, then the longest."""
    if len(tasks) <= _MAX_TASKS:
        return tasks

    def rank(at: int) -> tuple[int, float]:
        span = _span(tasks[at].rows)
        return _NOTABLE.index(tasks[at].state), -(span.seconds if span else 0.0)

    return [tasks[at] for at in sorted(heapq.nsmallest(_MAX_TASKS, range(len(tasks)), key=rank))]


def _span(rows: Sequence[JobRow]) -> TimeSpan | None:
    begins = [row.started_at for row in rows if row.started_at]
    if not begins:
        return None
    return TimeSpan(
        min(begins), max([*begins, *(row.finished_at for row in rows if row.finished_at)])
    )


def _columns(task: TaskLine) -> tuple[str, str, str, str]:
    span = _span(task.rows)
    took = formatting.seconds(span.seconds) if span else ""
    return task.name, f"{len(task.rows):,}", task.state_text(), took


def _layout(rows: Sequence[tuple[str, str, str, str]], width: int) -> _Layout:
    name, jobs, state, took = (max(map(len, column)) for column in zip(*rows, strict=True))
    room = width - jobs - state - took - 4 * len(_GAP)
    cut = min(name, max(_MIN_NAME, room - _MIN_CELLS))
    if room - cut < _MIN_CELLS:
        return _Layout(min(name, max(_MIN_NAME, room)), jobs, state, took, 0)
    return _Layout(cut, jobs, state, took, min(_MAX_CELLS, room - cut))


def _line(columns: tuple[str, str, str, str], layout: _Layout, color: str) -> Text:
    name, jobs, state, took = columns
    line = Text(name)
    line.truncate(layout.name, overflow="ellipsis", pad=True)
    line.append(f"{_GAP}{jobs:>{layout.jobs}}{_GAP}")
    line.append(f"{state:<{layout.state}}", color)
    return line.append(f"{_GAP}{took:>{layout.took}}{_GAP}")


def _axis(whole: TimeSpan, cells: int) -> str:
    end = formatting.seconds(whole.seconds)
    return "0" + f"{end:>{cells - 1}}"


def _time_line(task: TaskLine, whole: TimeSpan, cells: int) -> Text:
    """Draw when jobs of a task ran and failed, or say why none did."""
    started = [row for row in task.rows if row.started_at]
    if not started:
        reason = Text(formatting.reason(task.rows[0]), style="dim")
        reason.truncate(cells, overflow="ellipsis")
        return reason
    # One more at each begin and one less after each end: the sum counts the jobs in a cell.
    changes = [0] * (cells + 1)
    failed: set[int] = set()
    for row in started:
        begin, end = row.started_at or whole.begin, row.finished_at or whole.end
        changes[whole.cell(begin, cells)] += 1
        changes[whole.cell(end, cells) + 1] -= 1
        if row.state is State.FAILED:
            failed.add(whole.cell(end, cells))
    color = formatting.STATE_COLORS[task.state if not failed else State.SUCCEEDED]
    line = Text()
    for at, count in enumerate(accumulate(changes[:-1])):
        if at in failed:
            line.append(_FAILED, formatting.STATE_COLORS[State.FAILED])
        else:
            line.append(_RAN if count else " ", color)
    return line
