"""Progress on a terminal: one calm table that stays in its place, however large the DAG is.

Made by `run`, called by `performance` with each look. A task is one line, an array counted; what
runs, or is about to be tried again, is listed below. Tasks that do not fit are summed up in a line,
those where something happens shown first.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from workron.cli import words
from workron.core.plan import Kind
from workron.core.states import ENDS, Reason, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from types import TracebackType
    from typing import Any, Self

    from rich.console import Console, RenderableType

    from workron.cli.feed import Look, Run
    from workron.core.ids import JobId
    from workron.core.ports import Clock
    from workron.store.protocol import JobRow, RootRow

_BAR_CELLS: Final = 24
_GAP: Final = 2
_MOST_BUSY: Final = 8
_FRAME_LINES: Final = 8
"""Heading, column names, the sum of the rest, blank lines, two notes, the prompt below."""
_REFRESHES_PER_SECOND: Final = 4

_STEADY: Final = (State.SUCCEEDED, State.RUNNING, State.WAITING)
"""Columns that are always there, so that the table does not jump; others come when needed."""
_EXCEPTIONAL: Final = (State.FAILED, State.SKIPPED, State.CANCELLED)
_URGENCY: Final = (State.RUNNING, State.FAILED, State.WAITING)


@dataclass(frozen=True, slots=True)
class _Unit:
    """One line of the table: a task of a workflow, or a Job."""

    name: str
    counts: Counter[State]

    @property
    def urgency(self) -> int:
        """How early it is to be shown when not all fit."""
        return next((at for at, state in enumerate(_URGENCY) if self.counts[state]), len(_URGENCY))


class Board:
    """The live display."""

    def __init__(
        self, console: Console, clock: Clock, specs: Mapping[JobId, Mapping[str, Any]]
    ) -> None:
        self._console = console
        self._clock = clock
        self._specs = specs
        self._began = clock.monotonic()
        self._look: Look | None = None
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

    def show(self, look: Look) -> None:
        """Show what is there now."""
        self._look = look

    def say(self, text: str) -> None:
        """Show a line about the run itself, below all else."""
        self._notes.append(text)

    def _render(self) -> RenderableType:
        if self._look is None:
            return Text("starting", style="dim")
        runs = self._look.runs
        busy = [(run.root, row) for run in runs for row in run.commands if _runs(row)]
        busy += [(run.root, row) for run in runs for row in run.commands if _rests(row)]
        room = max(2, self._console.height - _FRAME_LINES)
        shown = busy[: min(_MOST_BUSY, room // 2)]
        units = list(_units(runs))
        parts: list[RenderableType] = [
            self._heading(units),
            Text(),
            _table(units, room - len(shown), self._console.width),
            Text(),
        ]
        parts += [
            self._pause(root, row)
            if _rests(row)
            else self._command(root, row, self._look.began(row))
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
        ended = sum(counts[state] for state in ENDS)
        full = round(_BAR_CELLS * ended / total) if total else _BAR_CELLS
        colour = "red" if counts[State.FAILED] else "green"
        elapsed = words.span(self._clock.monotonic() - self._began)
        return Text.assemble(
            ("━" * full, colour),
            ("━" * (_BAR_CELLS - full), "bright_black"),
            f"  {ended:,} of {total:,} jobs  ",
            (elapsed, "dim"),
        )

    def _command(self, root: RootRow, row: JobRow, since: datetime | None) -> Text:
        seconds = 0.0 if since is None else (self._clock.now() - since).total_seconds()
        return Text.assemble(
            ("▸ ", "cyan"),
            words.path(root, row),
            (f"  {words.span(max(0.0, seconds))}  ", "dim"),
            (words.command(self._specs.get(row.job, {})), "dim"),
            no_wrap=True,
            overflow="ellipsis",
        )

    def _pause(self, root: RootRow, row: JobRow) -> Text:
        seconds = 0.0 if row.due is None else (row.due - self._clock.now()).total_seconds()
        told = f"  {words.failures(row)}, again in {words.span(max(0.0, seconds))}"
        path = words.path(root, row)
        return Text.assemble(
            ("↻ ", "yellow"), path, (told, "dim"), no_wrap=True, overflow="ellipsis"
        )


def _runs(row: JobRow) -> bool:
    return row.state is State.RUNNING


def _rests(row: JobRow) -> bool:
    return row.reason is Reason.BACKOFF


def _column(row: JobRow) -> State:
    """Ready or not, a job that has not begun is to wait for."""
    return State.WAITING if row.state is State.QUEUED else row.state


def _units(runs: Sequence[Run]) -> Iterator[_Unit]:
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


def _table(units: Sequence[_Unit], room: int, width: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    total = sum((unit.counts for unit in units), Counter[State]())
    columns = [*_STEADY, *(state for state in _EXCEPTIONAL if total[state])]
    # What does not fit is cut off the names: a heading that is cut says nothing any more.
    widths = [max(len(state), len(f"{total[state]:,}")) for state in columns]
    left = width - sum(widths) - _GAP * (len(widths) + 1)
    table.add_column("", no_wrap=True, overflow="ellipsis", min_width=12, max_width=max(12, left))
    for state in columns:
        table.add_column(state.lower(), justify="right", header_style="dim", no_wrap=True)
    shown = set(map(id, sorted(units, key=lambda unit: unit.urgency)[:room]))
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
    return Text(f"{count:,}" if count else "·", style=words.COLOURS[state] if count else "dim")
