"""Progress as lines: one for each job that ends or fails, and the last lines of its output.

`ProgressTable` prints those of failures above the table, so both views describe a failure alike.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from rich.text import Text

from workron.cli import formatting, hints
from workron.core.states import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from workron.cli.progress import FailureDetail, RunSnapshot
    from workron.store.types import JobRow, RunRow


_FAILED_LINES: Final = 10
_RETRIED_LINES: Final = 3
"""Last lines of output that are shown after a failure, and after one that is retried."""
_RETRYING: Final = "Retrying"


class ProgressLines:
    """Prints a line for each change."""

    def __init__(self, write: Callable[[Text], None], *, has_output: bool) -> None:
        """Create it; `has_output` adds the last lines of what failed."""
        self._write = write
        self._has_output = has_output

    def show(self, snapshot: RunSnapshot) -> None:
        """Print a line for each job that ended, or that failed and will be retried."""
        lines = [*ends(snapshot, self._has_output), *retries(snapshot, self._has_output)]
        if lines:
            # Together: Rich takes longer for each call than for each line.
            self._write(Text("\n").join(lines))

    def say(self, text: str) -> None:
        """Print a message about the run itself."""
        self._write(Text(text))


def ends(
    snapshot: RunSnapshot, has_output: bool = True, states: frozenset[State] = frozenset(State)
) -> Iterator[Text]:
    """Yield a line for each job that ended in one of these states, with output if it failed."""
    for run, row in snapshot.ended:
        if row.state in states:
            yield _end(run, row, snapshot.time(row).seconds)
            if row.state is State.FAILED and (detail := snapshot.details.get(row.job)):
                yield from _last_lines(detail, _FAILED_LINES * has_output)
                yield from _hint(row, detail)


def retries(snapshot: RunSnapshot, has_output: bool = True) -> Iterator[Text]:
    """Yield a line for each attempt that failed and will be retried."""
    for run, row in snapshot.failing:
        detail = snapshot.details.get(row.job)
        yield _line(_RETRYING, "yellow", formatting.job_path(run, row), _failure(row, detail))
        if detail is not None:
            yield from _last_lines(detail, _RETRIED_LINES * has_output)
            # Once: later attempts fail in the same way.
            if row.failures == 1:
                yield from _hint(row, detail)


def _end(run: RunRow, row: JobRow, seconds: float | None) -> Text:
    took = "" if seconds is None else formatting.seconds(seconds)
    why = formatting.reason(row)
    if row.state is State.FAILED and row.attempts > 1:
        why += f", {row.attempts} attempts"
    # Rich takes three times as long for a line with a color, and most lines are successes.
    color = "" if row.state is State.SUCCEEDED else formatting.STATE_COLORS[row.state]
    return _line(row.state, color, formatting.job_path(run, row), took, why)


def _line(word: str, color: str, *parts: str) -> Text:
    return Text.assemble((f"{word:<9}", color), *(f"  {part}" for part in parts if part))


def _failure(row: JobRow, detail: FailureDetail | None) -> str:
    """Say how often a job failed, how it failed last, and after which time it is retried."""
    attempt = detail and detail.attempt
    if not attempt:
        return formatting.failures(row)
    code = "" if attempt.exit_code is None else f", exit code {attempt.exit_code}"
    why = f" ({attempt.reason})" if attempt.reason else ""
    text = f"{formatting.failures(row)}{code}{why}"
    if row.due is None:
        return text
    pause = max(0.0, (row.due - attempt.finished_at).total_seconds())
    return f"{text}, retry after {formatting.seconds(pause)}"


def _last_lines(detail: FailureDetail, count: int) -> Iterator[Text]:
    for line in formatting.last_lines(detail.output, count) if count else ():
        yield Text(f"  | {line}", style="dim")


def _hint(row: JobRow, detail: FailureDetail) -> Iterator[Text]:
    if text := hints.hint(detail.spec, row, detail.output, os.environ):
        yield Text(f"  hint: {text}", style="yellow")
