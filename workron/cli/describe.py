"""`workron describe`: one job with its attempts, and why it is in its current state."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from workron.cli import formatting, object_ref, options, system_clock
from workron.cli.stores import opened
from workron.core import printable, states
from workron.core.model import base
from workron.core.plan import Kind
from workron.core.states import State
from workron.scheduling import explain, job_view

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workron.cli.object_ref import ObjectReference
    from workron.scheduling.job_view import RunTime
    from workron.store.api import Store
    from workron.store.types import AttemptRow, JobRow, RunRow


_TAIL_LINES: Final = 20
_MAX_FAILED: Final = 20
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation that repeats the whole manifest."""


class DescribeFormat(StrEnum):
    """Output format of a description."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"


def describe(
    name: object_ref.JobArgument,
    store: options.Store,
    namespace: options.Namespace = "default",
    output: Annotated[
        DescribeFormat,
        typer.Option("--output", "-o", help="Output format.", **options.choice(DescribeFormat)),
    ] = DescribeFormat.TEXT,
) -> None:
    """Show details of a job or workflow, and why it is in its current state.

    Output as json or yaml is the object as `workron get` prints it. Its status also has the lines
    that say `why`, and the ended attempts of a job as `history`.
    """
    asyncio.run(_describe(store, namespace, name, output))


async def _describe(
    url: str, namespace: str, wanted: ObjectReference, form: DescribeFormat
) -> None:
    async with opened(url) as store:
        run, row = await object_ref.find_job(store, namespace, wanted)
        if form is not DescribeFormat.TEXT:
            described = await _object(store, run, row)
            typer.echo(formatting.as_document(described, is_yaml=form is DescribeFormat.YAML))
            return
        console = Console(highlight=False)
        for line in [*_identity(run, row), *await _state(store, run, row)]:
            console.print(line, soft_wrap=True)
        rest = _command(store, row) if row.kind is Kind.JOB else _group(store, run, row)
        for line in await rest:
            console.print(line, soft_wrap=True)


def _identity(run: RunRow, row: JobRow) -> Iterator[Text]:
    is_run = row.job == run.run
    yield _field("Name", formatting.job_path(run, row))
    yield _field("Kind", str(row.kind) if is_run else f"{row.kind} of {run.kind} {run.name}")
    yield _field("Namespace", run.namespace)
    yield _field("Id", str(row.job))
    if is_run:
        yield _field("Uid", str(run.uid))
        for what in ("labels", "annotations"):
            notes = dict(run.metadata.get(what) or {})
            notes.pop(_APPLIED, None)
            if notes:
                text = ", ".join(f"{key}={value}" for key, value in notes.items())
                yield _field(what.title(), printable.line(text))
    yield _field("Submitted", base.format_timestamp(run.submitted_at))


async def _object(store: Store, run: RunRow, row: JobRow) -> dict[str, Any]:
    spec = await store.get_spec(row.job) or {}
    if row.kind is Kind.JOB:
        found = await job_view.read_job_object(store, run, row, spec)
        found["status"]["history"] = [
            _attempt_fields(one) for one in await store.list_attempts(row.job)
        ]
    else:
        rows = await store.list_jobs(run.run)
        of_array = [row, *(one for one in rows if one.group_id == row.job)]
        is_array = row.kind is Kind.ARRAY
        make = job_view.array_object if is_array else job_view.workflow_object
        found = make(run, of_array if is_array else rows, spec)
    found["status"]["why"] = await _why(store, run, row)
    return found


def _attempt_fields(one: AttemptRow) -> dict[str, Any]:
    fields = {
        "attempt": one.attempt,
        "outcome": one.outcome,
        "reason": one.reason and str(one.reason),
        "exitCode": one.exit_code,
        "worker": one.worker,
        "startedAt": base.format_timestamp(one.started_at),
        "finishedAt": base.format_timestamp(one.finished_at),
    }
    return {name: value for name, value in fields.items() if value is not None}


async def _why(store: Store, run: RunRow, row: JobRow) -> list[str]:
    """Return the lines that say why a job is in its state; none if the state says it all."""
    if row.state in states.TERMINAL_STATES:
        allowed = await job_view.read_allowed_failures(store, row)
        return list(filter(None, [allowed or formatting.reason(row)]))
    blockers = await store.list_blockers(row.job) if explain.is_blocked(row) else ()
    now = system_clock.CLOCK.now()
    context = await explain.read_queue_context(store, run.namespace, now, run)
    return explain.explain(row, blockers, context)


async def _state(store: Store, run: RunRow, row: JobRow) -> Sequence[Text]:
    color = formatting.STATE_COLORS[row.state]
    lines = [Text.assemble(("State      ", "bold"), (str(row.state), color))]
    lines += [
        Text(("Why        " if at == 0 else " " * 11) + reason)
        for at, reason in enumerate(await _why(store, run, row))
    ]
    return [*lines, *_times(row, await job_view.last_run_time(store, row))]


def _times(row: JobRow, took: RunTime) -> Iterator[Text]:
    # The row of a retried job has only the time of its first start.
    is_last = row.state is State.RUNNING and job_view.has_run_time(row)
    is_last = is_last or row.state in states.TERMINAL_STATES
    if took.began is not None:
        title = "Started" if is_last else "First run"
        yield _field(title, base.format_timestamp(took.began))
    if row.finished_at is not None:
        duration = "" if took.seconds is None else f" (took {formatting.seconds(took.seconds)})"
        yield _field("Finished", base.format_timestamp(row.finished_at) + duration)


async def _command(store: Store, row: JobRow) -> Sequence[Text]:
    spec = await store.get_spec(row.job) or {}
    counts = (
        f"{row.attempts} attempt{'s' * (row.attempts != 1)}",
        f"{row.failures} failure{'s' * (row.failures != 1)}",
        f"{row.losses} loss{'es' * (row.losses != 1)}",
    )
    lines = [
        _field("Pool", f"{row.pool}, priority {row.priority}"),
        _field("Command", formatting.command(spec)),
        _field("Counted", ", ".join(counts)),
    ]
    attempts = await store.list_attempts(row.job)
    lines += [_field(f"Attempt {one.attempt}", _attempt(one)) for one in attempts]
    result = await store.read_result(row.job)
    if result is not None:
        lines.append(_field("Result", printable.line(json.dumps(result, ensure_ascii=False))))
    return [*lines, *_output(await store.read_output(row.job, last=printable.READ_BYTES))]


def _output(end: bytes) -> Iterator[Text]:
    shown = formatting.last_lines(end, _TAIL_LINES)
    if shown:
        is_all = len(end) < printable.READ_BYTES and printable.text(end).splitlines() == shown
        note = "" if is_all else "  last lines; `workron logs` prints all"
        yield Text.assemble(("Output", "bold"), note)
    for line in shown:
        yield Text(f"  | {line}", style="dim")


def _attempt(one: AttemptRow) -> str:
    seconds = (one.finished_at - one.started_at).total_seconds()
    parts = [one.outcome, f"in {formatting.seconds(max(0.0, seconds))}"]
    parts += [f"({one.reason})"] if one.reason else []
    parts += [f"exit code {one.exit_code}"] if one.exit_code is not None else []
    parts += [f"on {one.worker}"] if one.worker else []
    return " ".join(parts)


async def _group(store: Store, run: RunRow, row: JobRow) -> Sequence[Text]:
    commands = [
        one
        for one in await store.list_jobs(run.run)
        if one.kind is Kind.JOB and (row.kind is Kind.WORKFLOW or one.group_id == row.job)
    ]
    counts = Counter(one.state for one in commands)
    parts = [
        f"{counts[state]:,} {state.lower()}" for state in formatting.STATE_COLORS if counts[state]
    ]
    lines = [_field("Jobs", f"{len(commands):,}: {', '.join(parts)}")]
    troubled = [one for one in commands if one.state in formatting.TROUBLE]
    lines += [
        Text(f"  {formatting.job_path(run, one)}  {one.state}  {formatting.reason(one)}")
        for one in troubled[:_MAX_FAILED]
    ]
    if len(troubled) > _MAX_FAILED:
        lines.append(Text(f"  {len(troubled) - _MAX_FAILED:,} more"))
    return lines


def _field(name: str, value: str) -> Text:
    return Text.assemble((f"{name:<10} ", "bold"), value)
