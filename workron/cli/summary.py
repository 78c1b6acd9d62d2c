"""What `run` and `wait` say at the end: how it went, what was slow, what failed and why."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.text import Text

from workron.cli import exit_codes, words
from workron.core.states import Reason, State
from workron.scheduling import tail

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from workron.cli.feed import Run
    from workron.store.protocol import JobRow, ReaderDoor, RootRow

_SLOWEST: Final = 3
_FAILED: Final = 5
_TAIL_LINES: Final = 10
_TAIL_BYTES: Final = 4096
_FEW_RUNS: Final = 10

_ORDER: Final = (
    State.SUCCEEDED,
    State.FAILED,
    State.CANCELLED,
    State.SKIPPED,
    State.RUNNING,
    State.QUEUED,
    State.WAITING,
)


def exit_code(rows: Iterable[JobRow]) -> int:
    """Judge roots: a job that was not needed went well, one that was cut off did not."""
    return exit_codes.OK if all(map(_went_well, rows)) else exit_codes.FAILED


def _went_well(row: JobRow) -> bool:
    return row.state is State.SUCCEEDED or row.reason is Reason.NOT_NEEDED


async def tell(console: Console, reader: ReaderDoor, runs: Sequence[Run], seconds: float) -> None:
    """Print it."""
    commands = [(run.root, row) for run in runs for row in run.commands]
    if len(runs) <= _FEW_RUNS:
        for run in runs:
            _print(console, _headline(run))
    _print(console, _counts([row for _, row in commands], seconds))
    _tell_slowest(console, commands)
    failed = [(root, row) for root, row in commands if row.state is State.FAILED]
    for root, row in failed[:_FAILED]:
        _print(console, _failure(root, row))
        for line in _last_lines(await reader.output(row.job)):
            _print(console, Text(f"  | {line}", style="dim"))
    if len(failed) > _FAILED:
        _print(console, Text(f"and {len(failed) - _FAILED:,} more jobs failed"))


def _headline(run: Run) -> Text:
    row = run.row
    why = words.why(row)
    return Text.assemble(
        (f"{run.root.name}  ", "bold"),
        (str(row.state), words.COLOURS[row.state]),
        f"  {why}" if why else "",
    )


def _counts(rows: Sequence[JobRow], seconds: float) -> Text:
    counts = Counter(row.state for row in rows)
    parts = [f"{counts[state]:,} {state.lower()}" for state in _ORDER if counts[state]]
    total = "1 job" if len(rows) == 1 else f"{len(rows):,} jobs"
    return Text(f"{total} in {words.span(seconds)}: {', '.join(parts)}")


def _tell_slowest(console: Console, commands: Sequence[tuple[RootRow, JobRow]]) -> None:
    timed = [(words.took(row) or 0.0, words.path(root, row)) for root, row in commands]
    slowest = sorted(timed, reverse=True)[:_SLOWEST]
    if len(commands) > 1 and slowest[0][0] > 0:
        told = ", ".join(f"{path} {words.span(seconds)}" for seconds, path in slowest if seconds)
        _print(console, Text(f"slowest: {told}"))


def _failure(root: RootRow, row: JobRow) -> Text:
    tries = "" if row.attempts <= 1 else f", {row.attempts} attempts"
    return Text.assemble((words.path(root, row), "bold red"), f"  {words.why(row)}{tries}")


def _last_lines(output: bytes) -> list[str]:
    return tail.tail(output, _TAIL_BYTES).splitlines()[-_TAIL_LINES:]


def _print(console: Console, text: Text) -> None:
    # Not wrapped: who reads it from a pipe wants whole lines, and a terminal wraps by itself.
    console.print(text, soft_wrap=True)
