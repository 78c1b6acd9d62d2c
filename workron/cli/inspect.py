"""The commands that show jobs of a store: get and describe.

`get` prints a table, or objects in the shape of their manifests. `describe` prints one job with its
attempts and why it is in its current state.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from workron.cli import formatting, object_ref, options, system_clock
from workron.cli.options import OutputFormat
from workron.cli.stores import opened, run_command
from workron.core import printable, states
from workron.core.model import base
from workron.core.plan import Kind
from workron.core.states import State
from workron.scheduling import explain, job_view

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from workron.core.ids import JobId
    from workron.scheduling.explain import QueueContext
    from workron.scheduling.job_view import RunTime
    from workron.store.api import Store
    from workron.store.types import AttemptRow, JobRow, RunRow


_TITLES: Final = ("NAME", "STATUS", "JOBS", "ATTEMPTS", "TOOK", "AGE", "REASON")


def get(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND/][NAMESPACE/]NAME",
            help="A job or workflow, with all its jobs; default: all of the namespace.",
        ),
    ] = None,
    store: options.Store = None,
    namespace: options.Namespace = "default",
    output: options.Output = OutputFormat.TABLE,
) -> None:
    """List jobs and workflows, or one workflow with all its jobs.

    JSON output is {"items": [...]}: objects in the shape of their manifests, with a status. It
    includes the jobs of workflows.
    """
    url = options.require_persistent_store(store)
    wanted = None if name is None else object_ref.parse(name)
    run_command(_get(url, namespace, wanted, output))


async def _get(
    url: str, namespace: str, wanted: object_ref.ObjectReference | None, output: OutputFormat
) -> None:
    async with opened(url) as store:
        if output is OutputFormat.JSON:
            items = await _items(store, await _roots(store, namespace, wanted))
            typer.echo(json.dumps({"items": items}, indent=2))
            return
        lines = list(await _lines(store, namespace, wanted))
    if lines:
        formatting.print_table(_TITLES, lines, formatting.STATE_COLORS)
    else:
        typer.echo(f"no jobs or workflows in namespace {namespace!r}", err=True)


async def _roots(
    store: Store, namespace: str, wanted: object_ref.ObjectReference | None
) -> Sequence[RunRow]:
    if wanted is None:
        return await store.list_runs(namespace)
    return [await object_ref.find_root(store, namespace, wanted)]


async def _items(store: Store, roots: Sequence[RunRow]) -> list[dict[str, Any]]:
    return [item for root in roots for item in await job_view.run_objects(store, root)]


async def _lines(
    store: Store, namespace: str, wanted: object_ref.ObjectReference | None
) -> Iterable[Sequence[str]]:
    if wanted is None:
        heads = await store.list_run_summaries(namespace)
        spans = await job_view.run_times(store, [one.job for one in heads])
        around = await explain.read_queue_context(store, namespace, system_clock.CLOCK.now())
        return (
            _line(one.run, one.job, spans[one.job.job], one.ended, one.commands, around)
            for one in heads
        )
    root = await object_ref.find_root(store, namespace, wanted)
    rows = await store.list_jobs(root.run)
    ended, commands = (
        _counted(row for row in rows if row.state in states.TERMINAL_STATES),
        _counted(rows),
    )
    spans = await job_view.run_times(store, rows)
    around = await explain.read_queue_context(store, root.namespace, system_clock.CLOCK.now(), root)
    return (
        _line(root, row, spans[row.job], ended[row.job], commands[row.job], around) for row in rows
    )


def _counted(rows: Iterable[JobRow]) -> Counter[JobId | None]:
    """Count the commands of each group; a workflow includes those of its arrays."""
    counts: Counter[JobId | None] = Counter()
    for row in rows:
        if row.kind is Kind.JOB:
            counts.update({row.group_id, row.run})
    return counts


def _line(
    root: RunRow, row: JobRow, took: RunTime, ended: int, commands: int, around: QueueContext
) -> Sequence[str]:
    is_command = row.kind is Kind.JOB
    kind = f"{root.kind.lower()}/" if row.job == root.run else ""
    return (
        kind + formatting.job_path(root, row),
        row.state,
        "" if is_command else f"{ended:,}/{commands:,}",
        str(row.attempts) if is_command else "",
        "" if took.seconds is None else formatting.seconds(took.seconds),
        formatting.age(root.submitted_at, around.now),
        explain.brief(row, around) or formatting.reason(row),
    )


_TAIL_BYTES: Final = 4096
_TAIL_LINES: Final = 20
_MAX_FAILED: Final = 20
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation that repeats the whole manifest."""


def describe(
    name: options.Member,
    store: options.Store = None,
    namespace: options.Namespace = "default",
) -> None:
    """Show details of a job or workflow, and why it is in its current state."""
    url = options.require_persistent_store(store)
    run_command(_describe(url, namespace, object_ref.parse(name)))


async def _describe(url: str, namespace: str, wanted: object_ref.ObjectReference) -> None:
    async with opened(url) as store:
        found = await object_ref.find(store, namespace, wanted)
        root, row = found.root, await object_ref.pick(store, found)
        console = Console(highlight=False)
        for line in [*_identity(root, row), *await _state(store, root, row)]:
            console.print(line, soft_wrap=True)
        rest = _command(store, row) if row.kind is Kind.JOB else _members(store, root, row)
        for line in await rest:
            console.print(line, soft_wrap=True)


def _identity(root: RunRow, row: JobRow) -> Iterator[Text]:
    is_root = row.job == root.run
    yield _field("Name", formatting.job_path(root, row))
    yield _field("Kind", str(row.kind) if is_root else f"{row.kind} of {root.kind} {root.name}")
    yield _field("Namespace", root.namespace)
    yield _field("Id", str(row.job))
    if is_root:
        yield _field("Uid", str(root.uid))
    for what in ("labels", "annotations"):
        notes = dict(root.metadata.get(what) or {})
        notes.pop(_APPLIED, None)
        if is_root and notes:
            text = ", ".join(f"{key}={value}" for key, value in notes.items())
            yield _field(what.title(), printable.line(text))
    yield _field("Submitted", base.format_timestamp(root.submitted_at))


async def _state(store: Store, root: RunRow, row: JobRow) -> Sequence[Text]:
    lines = [
        Text.assemble(("State      ", "bold"), (str(row.state), formatting.STATE_COLORS[row.state]))
    ]
    blockers = await store.list_blockers(row.job) if explain.is_blocked(row) else ()
    around = await explain.read_queue_context(store, root.namespace, system_clock.CLOCK.now(), root)
    reasons = [formatting.reason(row)]
    if row.state not in states.TERMINAL_STATES:
        reasons = explain.explain(row, blockers, around)
    reasons = list(filter(None, reasons))
    lines += [
        Text(("Why        " if at == 0 else " " * 11) + line) for at, line in enumerate(reasons)
    ]
    return [*lines, *_times(row, await job_view.last_run_time(store, row))]


def _times(row: JobRow, took: RunTime) -> Iterator[Text]:
    is_shown = row.state is State.RUNNING and job_view.has_run_time(row)
    is_shown = is_shown or row.state in states.TERMINAL_STATES
    # The row of a retried job has only the time of its first start.
    title = "Started" if is_shown else "First run"
    began = took.began
    if began is not None:
        yield _field(title, base.format_timestamp(began))
    if row.finished_at is not None:
        duration = "" if took.seconds is None else f" (took {formatting.seconds(took.seconds)})"
        yield _field("Finished", base.format_timestamp(row.finished_at) + duration)


async def _command(store: Store, row: JobRow) -> Sequence[Text]:
    spec = await store.get_spec(row.job) or {}
    lines = [
        _field("Pool", f"{row.pool}, priority {row.priority}"),
        _field("Command", formatting.command(spec)),
        _field("Counted", _describe_counted(row)),
    ]
    attempts = await store.list_attempts(row.job)
    lines += [_field(f"Attempt {one.attempt}", _attempt(one)) for one in attempts]
    result = await store.read_result(row.job)
    if result is not None:
        lines.append(_field("Result", printable.line(json.dumps(result, ensure_ascii=False))))
    end = await store.read_output(row.job, last=printable.READ_BYTES)
    return [*lines, *_output(end)]


def _output(end: bytes) -> Iterator[Text]:
    shown = printable.tail(end, _TAIL_BYTES).splitlines()[-_TAIL_LINES:]
    if shown:
        is_all = len(end) < printable.READ_BYTES and printable.text(end).splitlines() == shown
        note = "" if is_all else "  last lines; `workron output` prints all"
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


async def _members(store: Store, root: RunRow, row: JobRow) -> Sequence[Text]:
    rows = await store.list_jobs(root.run)
    mine = [one for one in rows if row.kind is Kind.WORKFLOW or one.group_id == row.job]
    commands = [one for one in mine if one.kind is Kind.JOB]
    counts = {
        state: sum(one.state is state for one in commands) for state in formatting.STATE_COLORS
    }
    summary = ", ".join(f"{count:,} {state.lower()}" for state, count in counts.items() if count)
    lines = [_field("Jobs", f"{len(commands):,}: {summary}")]
    troubled = [one for one in commands if one.state in formatting.TROUBLE]
    lines += [
        Text(f"  {formatting.job_path(root, one)}  {one.state}  {formatting.reason(one)}")
        for one in troubled[:_MAX_FAILED]
    ]
    if len(troubled) > _MAX_FAILED:
        lines.append(Text(f"  {len(troubled) - _MAX_FAILED:,} more"))
    return lines


def _describe_counted(row: JobRow) -> str:
    counts = {
        ("attempt", "attempts"): row.attempts,
        ("failure", "failures"): row.failures,
        ("loss", "losses"): row.losses,
    }
    return ", ".join(f"{count} {forms[count != 1]}" for forms, count in counts.items())


def _field(name: str, value: str) -> Text:
    return Text.assemble((f"{name:<10} ", "bold"), value)
