"""The summary that `run` prints at its end: states, slowest jobs, failures and their output."""

from __future__ import annotations

import heapq
import os
from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.text import Text

from workron.cli import exit_codes, formatting, hints
from workron.core import printable
from workron.core.states import Reason, State
from workron.scheduling import job_view

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from rich.console import Console

    from workron.cli.progress import ObservedRun
    from workron.store.api import ReadStore
    from workron.store.types import JobRow, RunRow


_SLOWEST: Final = 3
_FAILED: Final = 5
_TAIL_LINES: Final = 10
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
    """Return the exit code for ended runs; a job that was not needed counts as a success."""
    are_successes = all(
        row.state is State.SUCCEEDED or row.reason is Reason.NOT_NEEDED for row in rows
    )
    return exit_codes.OK if are_successes else exit_codes.FAILED


async def print_summary(
    console: Console, reader: ReadStore, runs: Sequence[ObservedRun], seconds: float, before: int
) -> None:
    """Print the summary; `before` counts jobs that ended in an earlier process."""
    # One by one: if the store fails, the lines so far are known to the user.
    async for line in _lines(reader, runs, seconds, before):
        # Not wrapped: a pipe needs whole lines, and a terminal wraps lines itself.
        console.print(line, soft_wrap=True)


async def _lines(
    reader: ReadStore, runs: Sequence[ObservedRun], seconds: float, before: int
) -> AsyncIterator[Text]:
    commands = [(one.run, row) for one in runs for row in one.commands]
    for observed in runs:
        if len(runs) <= _FEW_RUNS or _has_allowed_failures(observed):
            yield _headline(observed)
    counts = _counts([row for _, row in commands], seconds)
    yield Text(counts + (f"; {before:,} of them ended before this start" if before else ""))
    slowest = await _slowest(reader, commands)
    if len(commands) > 1 and slowest:
        shown = ", ".join(f"{path} {formatting.seconds(seconds)}" for seconds, path in slowest)
        yield Text(f"slowest: {shown}")
    failed = [(run, row) for run, row in commands if row.state is State.FAILED]
    for run, row in failed[:_FAILED]:
        attempts = "" if row.attempts <= 1 else f", {row.attempts} attempts"
        path = formatting.job_path(run, row)
        yield Text.assemble((path, "bold red"), f"  {formatting.reason(row)}{attempts}")
        output = await reader.read_output(row.job, last=printable.READ_BYTES)
        for line in formatting.last_lines(output, _TAIL_LINES):
            yield Text(f"  | {line}", style="dim")
        if text := hints.hint(await reader.get_spec(row.job) or {}, row, output, os.environ):
            yield Text(f"  hint: {text}", style="yellow")
    if len(failed) > _FAILED:
        yield Text(f"{len(failed) - _FAILED:,} more jobs failed")


def _has_allowed_failures(run: ObservedRun) -> bool:
    is_success = run.row.state is State.SUCCEEDED
    return is_success and any(row.state is State.FAILED for row in run.commands)


def _headline(run: ObservedRun) -> Text:
    why = formatting.reason(run.row)
    if run.row.state is State.SUCCEEDED:
        failed = job_view.failures_in_order(run.commands)
        why = job_view.allowed_failures(len(failed), failed) or why
    return Text.assemble(
        (f"{run.run.name}  ", "bold"),
        (str(run.row.state), formatting.STATE_COLORS[run.row.state]),
        f"  {why}" if why else "",
    )


def _counts(rows: Sequence[JobRow], seconds: float) -> str:
    counts = Counter(row.state for row in rows)
    parts = [f"{counts[state]:,} {state.lower()}" for state in _ORDER if counts[state]]
    total = "1 job" if len(rows) == 1 else f"{len(rows):,} jobs"
    return f"{total} in {formatting.seconds(seconds)}: {', '.join(parts)}"


async def _slowest(
    reader: ReadStore, commands: Sequence[tuple[RunRow, JobRow]]
) -> Sequence[tuple[float, str]]:
    # The time from first start to end bounds the time of the last attempt. In descending order of
    # these bounds, few attempts have to be read, however many jobs were retried.
    bounds = [
        (-(job_view.run_time(row).seconds or 0.0), at) for at, (_, row) in enumerate(commands)
    ]
    heapq.heapify(bounds)
    known: set[int] = set()
    found: list[tuple[float, str]] = []
    while bounds and len(found) < _SLOWEST:
        bound, at = heapq.heappop(bounds)
        run, row = commands[at]
        if at in known or job_view.has_run_time(row):
            found.append((-bound, formatting.job_path(run, row)))
        else:
            known.add(at)
            seconds = (await job_view.last_run_time(reader, row)).seconds or 0.0
            heapq.heappush(bounds, (-seconds, at))
    return [one for one in found if one[0] > 0]
