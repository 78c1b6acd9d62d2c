"""`workron describe`: everything about one job or workflow, above all why it waits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.text import Text

from workron.cli import options, reference, system, words
from workron.cli.opening import carry_out, opened
from workron.core import states
from workron.core.model import moment
from workron.core.plan import Kind
from workron.core.states import State
from workron.scheduling import explain, span, surroundings, tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workron.scheduling.span import Span
    from workron.store.protocol import Attempt, JobRow, RootRow, Store

_TAIL_BYTES: Final = 4096
_TAIL_LINES: Final = 20
_MOST_FAILED: Final = 20
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The whole manifest once more, in one line."""


def describe(
    name: options.Member,
    store: options.Store = None,
    namespace: options.Namespace = "default",
) -> None:
    """Tell all about a job or a workflow, and why it waits."""
    url = options.lasting(store)
    carry_out(_describe(url, namespace, reference.parse(name)))


async def _describe(url: str, namespace: str, wanted: reference.Reference) -> None:
    async with opened(url) as store:
        found = await reference.find(store, namespace, wanted)
        root, row = found.root, await reference.pick(store, found)
        console = Console(highlight=False)
        for line in [*_identity(root, row), *await _standing(store, root, row)]:
            console.print(line, soft_wrap=True)
        rest = _command(store, row) if row.kind is Kind.JOB else _members(store, root, row)
        for line in await rest:
            console.print(line, soft_wrap=True)


def _identity(root: RootRow, row: JobRow) -> Iterator[Text]:
    is_root = row.job == root.root
    yield _field("Name", words.path(root, row))
    yield _field("Kind", str(row.kind) if is_root else f"{row.kind} of {root.kind} {root.name}")
    yield _field("Namespace", root.namespace)
    yield _field("Id", str(row.job))
    if is_root:
        yield _field("Uid", str(root.uid))
    for what in ("labels", "annotations"):
        notes = dict(root.metadata.get(what) or {})
        notes.pop(_APPLIED, None)
        if is_root and notes:
            told = ", ".join(f"{key}={value}" for key, value in notes.items())
            yield _field(what.title(), tail.line(told))
    yield _field("Submitted", moment.render(root.submitted_at))


async def _standing(store: Store, root: RootRow, row: JobRow) -> Sequence[Text]:
    lines = [Text.assemble(("State      ", "bold"), (str(row.state), words.COLOURS[row.state]))]
    blockers = await store.blockers(row.job) if explain.is_blocked(row) else ()
    around = await surroundings.look(store, root.namespace, system.CLOCK.now(), root)
    told = [words.why(row)]
    if row.state not in states.ENDS:
        told = explain.explain(row, blockers, around)
    told = list(filter(None, told))
    lines += [Text(("Why        " if at == 0 else " " * 11) + line) for at, line in enumerate(told)]
    return [*lines, *_times(row, await span.last(store, row))]


def _times(row: JobRow, took: Span) -> Iterator[Text]:
    is_shown = row.state is State.RUNNING and span.is_told(row)
    is_shown = is_shown or row.state in states.ENDS
    # Of what runs again, or is to, no row tells more than when it first began.
    title = "Started" if is_shown else "First run"
    began = took.began
    if began is not None:
        yield _field(title, moment.render(began))
    if row.finished_at is not None:
        told = "" if took.seconds is None else f" (took {words.span(took.seconds)})"
        yield _field("Finished", moment.render(row.finished_at) + told)


async def _command(store: Store, row: JobRow) -> Sequence[Text]:
    spec = await store.spec(row.job) or {}
    lines = [
        _field("Pool", f"{row.pool}, priority {row.priority}"),
        _field("Command", words.command(spec)),
        _field("Counted", _counted(row)),
    ]
    attempts = await store.attempts(row.job)
    lines += [_field(f"Attempt {one.attempt}", _attempt(one)) for one in attempts]
    result = await store.result(row.job)
    if result is not None:
        lines.append(_field("Result", tail.line(json.dumps(result, ensure_ascii=False))))
    end = await store.output(row.job, last=tail.READ_BYTES)
    return [*lines, *_output(end)]


def _output(end: bytes) -> Iterator[Text]:
    shown = tail.tail(end, _TAIL_BYTES).splitlines()[-_TAIL_LINES:]
    if shown:
        is_all = len(end) < tail.READ_BYTES and tail.text(end).splitlines() == shown
        told = "" if is_all else "  the end of it; `workron output` prints all that is kept"
        yield Text.assemble(("Output", "bold"), told)
    for line in shown:
        yield Text(f"  | {line}", style="dim")


def _attempt(one: Attempt) -> str:
    seconds = (one.finished_at - one.started_at).total_seconds()
    parts = [one.outcome, f"in {words.span(max(0.0, seconds))}"]
    parts += [f"({one.reason})"] if one.reason else []
    parts += [f"exit code {one.exit_code}"] if one.exit_code is not None else []
    parts += [f"on {one.worker}"] if one.worker else []
    return " ".join(parts)


async def _members(store: Store, root: RootRow, row: JobRow) -> Sequence[Text]:
    rows = await store.jobs(root.root)
    mine = [one for one in rows if row.kind is Kind.WORKFLOW or one.member_of == row.job]
    commands = [one for one in mine if one.kind is Kind.JOB]
    counts = {state: sum(one.state is state for one in commands) for state in words.COLOURS}
    told = ", ".join(f"{count:,} {state.lower()}" for state, count in counts.items() if count)
    lines = [_field("Jobs", f"{len(commands):,}: {told}")]
    troubled = [one for one in commands if one.state in words.TROUBLE]
    lines += [
        Text(f"  {words.path(root, one)}  {one.state}  {words.why(one)}")
        for one in troubled[:_MOST_FAILED]
    ]
    if len(troubled) > _MOST_FAILED:
        lines.append(Text(f"  and {len(troubled) - _MOST_FAILED:,} more"))
    return lines


def _counted(row: JobRow) -> str:
    counts = {
        ("attempt", "attempts"): row.attempts,
        ("failure", "failures"): row.failures,
        ("loss", "losses"): row.losses,
    }
    return ", ".join(f"{count} {forms[count != 1]}" for forms, count in counts.items())


def _field(name: str, value: str) -> Text:
    return Text.assemble((f"{name:<10} ", "bold"), value)
