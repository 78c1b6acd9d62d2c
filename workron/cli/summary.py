"""The summary that `run` prints at its end.

A table with a time line per task, the state of each run, the slowest jobs, which job failed first,
and the commands that show more. The output of failures was printed when they happened.
"""

from __future__ import annotations

import heapq
import json
import os
import shlex
from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.text import Text

from workron.cli import exit_codes, formatting, timeline
from workron.core import printable
from workron.core.plan import Kind
from workron.core.states import Reason, State
from workron.scheduling import job_view
from workron.store import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from rich.console import Console

    from workron.cli.progress import ObservedRun
    from workron.store.api import ReadStore
    from workron.store.types import JobRow, RunRow


_SLOWEST: Final = 3
_FEW_RUNS: Final = 10
_DEFAULT_NAMESPACE: Final = "default"
_STORE_VARIABLE: Final = "WORKRON_STORE"
_KEEP_OUTPUT: Final = "to keep the output of all jobs, use --store sqlite:///path or --output-dir"

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
    async for line in _lines(console.width, reader, runs, seconds, before):
        # Not wrapped: a pipe needs whole lines, and a terminal wraps lines itself.
        console.print(line, soft_wrap=True)


async def _lines(
    width: int, reader: ReadStore, runs: Sequence[ObservedRun], seconds: float, before: int
) -> AsyncIterator[Text]:
    commands = [(one.run, row) for one in runs for row in one.commands]
    if len(commands) > 1:
        yield Text()
        for line in timeline.lines(runs, width):
            yield line
        yield Text()
    for observed in runs:
        if _needs_headline(observed, len(runs)):
            yield _headline(observed)
    counts = _counts([row for _, row in commands], seconds)
    yield Text(counts + (f"; {before:,} of them ended before this start" if before else ""))
    slowest = await _slowest(reader, commands)
    if len(commands) > 1 and slowest:
        shown = ", ".join(f"{path} {formatting.seconds(seconds)}" for seconds, path in slowest)
        yield Text(f"slowest: {shown}")
    failed = first_failure(runs)
    if failed is not None and len(commands) > 1:
        run, row = failed
        path = formatting.job_path(run, row)
        yield Text.assemble("failed first: ", (path, "bold red"), f"  {formatting.reason(row)}")


def first_failure(runs: Sequence[ObservedRun]) -> tuple[RunRow, JobRow] | None:
    """Return the job that failed first."""
    failed = [(one.run, job_view.failures_in_order(one.commands)) for one in runs]
    first = [(run, rows[0]) for run, rows in failed if rows]
    return min(first, key=lambda one: (one[1].finished_at, one[1].job), default=None)


def next_steps(runs: Sequence[ObservedRun], store: str) -> list[str]:
    """Return lines that say how to see more of a failure."""
    failed = first_failure(runs)
    if failed is None:
        return []
    if connect.is_memory(store):
        has_several = sum(len(one.commands) for one in runs) > 1
        return [_KEEP_OUTPUT] if has_several else []
    run, row = failed
    options = "" if run.namespace == _DEFAULT_NAMESPACE else f" -n {run.namespace}"
    has_variable = os.environ.get(_STORE_VARIABLE) == store
    has_password = not connect.is_file(store) and connect.redact(store) != store
    if not has_variable and not has_password:
        options += f" --store {shlex.quote(store)}"
    setting = f", with {_STORE_VARIABLE} set to this store" if has_password else ""
    commands = [f"workron output {formatting.job_path(run, row)}{options}"]
    if run.kind is Kind.WORKFLOW:
        commands.append(f"workron describe {run.name}{options}")
    return [f"to see more{setting}:", *(f"  {command}" for command in commands)]


async def print_results(console: Console, reader: ReadStore, runs: Sequence[ObservedRun]) -> None:
    """Print the result of each job that has one, as JSON on one line."""
    for observed in runs:
        for row in observed.commands:
            result = await reader.read_result(row.job) if row.state is State.SUCCEEDED else None
            if result is not None:
                path = formatting.job_path(observed.run, row)
                text = json.dumps(result, ensure_ascii=False)
                console.print(Text(f"{path}  {printable.line(text)}"), soft_wrap=True)


def _needs_headline(run: ObservedRun, count: int) -> bool:
    """Return whether to print the state of a run: a Job's is in its line or in the table."""
    if run.run.kind is not Kind.WORKFLOW:
        return False
    return count <= _FEW_RUNS or _has_allowed_failures(run)


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
