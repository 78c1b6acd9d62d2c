"""`workron get`: lists runs, or the jobs of one run, as a table, objects or names.

With --watch it prints a line for each job that changes.
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from workron.cli import formatting, object_ref, options, stores, system_clock
from workron.cli.table import Table
from workron.cli.watch import Watch
from workron.core import errors, states
from workron.core.model import base
from workron.core.plan import Kind
from workron.core.states import State
from workron.scheduling import explain, job_view

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet
    from datetime import datetime

    from workron.cli.object_ref import ObjectReference
    from workron.core.ids import JobId
    from workron.scheduling.explain import QueueContext
    from workron.store.api import Store
    from workron.store.types import JobRow, RunRow


_TITLES: Final = ("NAME", "STATUS", "JOBS", "ATTEMPTS", "TOOK", "AGE", "REASON")
_WIDE: Final = ("ID", "POOL", "PRIORITY", "WORKER", "EXIT", "SUBMITTED")
_UNSTEADY: Final = frozenset({"TOOK", "AGE"})
"""Columns whose change alone is not worth a new line of --watch."""


class ListFormat(StrEnum):
    """Output format of a list."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on the jobs of a list."""

    states: AbstractSet[State] = frozenset(State)
    labels: Mapping[str, str | None] = field(default_factory=dict)
    """Required labels; None: any value."""
    since: timedelta | None = None

    def accept(self, run: RunRow, row: JobRow, now: datetime) -> bool:
        """Return whether a job belongs into the list."""
        labels = run.metadata.get("labels") or {}
        return (
            row.state in self.states
            and all(
                key in labels and value in {None, labels[key]} for key, value in self.labels.items()
            )
            and (self.since is None or now - run.submitted_at <= self.since)
        )


def _states(text: str) -> AbstractSet[State]:
    by_name = {state.lower(): state for state in State}
    try:
        return frozenset(by_name[word.strip().lower()] for word in text.split(","))
    except KeyError as error:
        raise errors.InputError(
            f"--state: {error.args[0]!r} is not one of: {', '.join(State)}"
        ) from None


def _labels(text: str) -> Mapping[str, str | None]:
    pairs = [word.partition("=") for word in text.split(",")]
    if not all(key.strip() for key, _, _ in pairs):
        raise errors.InputError(f"--label: {text!r} is not of the form KEY=VALUE,KEY,...")
    return {key.strip(): value.strip() if equals else None for key, equals, value in pairs}


def get(  # noqa: PLR0913, PLR0917 - one for each option
    store: options.Store,
    name: object_ref.RunArgument = None,
    namespace: options.Namespace = "default",
    output: Annotated[
        ListFormat,
        typer.Option("--output", "-o", help="Output format.", **options.choice(ListFormat)),
    ] = ListFormat.TABLE,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Print a new line for each change.")
    ] = False,
    state: Annotated[
        Any,
        typer.Option(
            parser=_states, metavar="STATE,...", help="List only these states: Failed,Running."
        ),
    ] = None,
    label: Annotated[
        Any,
        typer.Option(
            "--label",
            "-l",
            parser=_labels,
            metavar="KEY=VALUE,...",
            help="List only runs with these labels; KEY alone: with any value.",
        ),
    ] = None,
    since: Annotated[
        timedelta | None, options.duration("--since", "List only runs submitted in this time: 2h.")
    ] = None,
) -> None:
    """List jobs and workflows, or one workflow with all its jobs.

    Output as json or yaml is {"items": [...]}: objects in the shape of their manifests, with a
    status, and the result in it. It includes the jobs of workflows. -o name prints names for other
    commands. --watch continues until the workflow has ended, or until Ctrl-C.
    """
    filters = Filters(state or frozenset(State), label or {}, since)
    if name is not None and (label or since):
        raise errors.InputError("--label and --since select runs; leave out the name, or them")
    listing = Listing(namespace, name, filters, output)
    if watch and output not in {ListFormat.TABLE, ListFormat.WIDE}:
        raise errors.InputError(f"--watch prints a table; leave out -o {output}")
    asyncio.run(listing.watch(store) if watch else listing.print(store))


@dataclass(frozen=True, slots=True)
class ListedJob:
    """A line of the list."""

    run: RunRow
    row: JobRow
    ended: int
    commands: int

    @property
    def name(self) -> str:
        """The name that commands accept."""
        kind = f"{self.run.kind.lower()}/" if self.row.job == self.run.run else ""
        return kind + formatting.job_path(self.run, self.row)


@dataclass(frozen=True, slots=True)
class Listing:
    """One list that a user asked for."""

    namespace: str
    wanted: ObjectReference | None
    filters: Filters
    form: ListFormat

    @property
    def titles(self) -> Sequence[str]:
        """The heading of the table."""
        return (*_TITLES, *_WIDE) if self.form is ListFormat.WIDE else _TITLES

    async def print(self, url: str) -> None:
        """Print the list once."""
        async with stores.opened(url) as store:
            found = await self._read(store)
            if self.form in {ListFormat.JSON, ListFormat.YAML}:
                await self._print_objects(store, found)
            elif self.form is ListFormat.NAME:
                typer.echo("".join(f"{one.name}\n" for one in found), nl=False)
            elif found:
                table = Table(self.titles, formatting.STATE_COLORS)
                table.print([*(await self._lines(store, found)).values()])
            else:
                typer.echo(self._nothing(), err=True)

    async def watch(self, url: str) -> None:
        """Print the list, and then each line that changes, until a named run has ended."""
        outage = stores.outage()
        async with stores.opened_with_retry(url, outage) as store:

            async def read() -> Mapping[JobId, Sequence[str]]:
                return await self._lines(store, await self._read(store))

            watch = Watch(self.titles, formatting.STATE_COLORS, _UNSTEADY)
            await watch.run(store, outage, read, functools.partial(self._has_ended, store))

    def _nothing(self) -> str:
        which = "" if self.filters == Filters() else " match"
        return f"no jobs or workflows{which} in namespace {self.namespace!r}"

    async def _has_ended(self, store: Store) -> bool:
        if self.wanted is None:
            return False
        run = await object_ref.find_run(store, self.namespace, self.wanted)
        return bool(await store.filter_ended([run.run]))

    async def _read(self, store: Store) -> list[ListedJob]:
        if self.wanted is None:
            found = [
                ListedJob(one.run, one.job, one.ended, one.commands)
                for one in await store.list_run_summaries(self.namespace)
            ]
        else:
            run = await object_ref.find_run(store, self.namespace, self.wanted)
            found = _jobs_of(run, await store.list_jobs(run.run))
        now = system_clock.CLOCK.now()
        return [one for one in found if self.filters.accept(one.run, one.row, now)]

    async def _lines(
        self, store: Store, found: Sequence[ListedJob]
    ) -> Mapping[JobId, Sequence[str]]:
        run = found[0].run if self.wanted is not None and found else None
        namespace = self.namespace if run is None else run.namespace
        context = await explain.read_queue_context(store, namespace, system_clock.CLOCK.now(), run)
        rows = [one.row for one in found]
        times = await job_view.run_times(store, rows)
        allowed = await job_view.allowed_failures_of(store, rows)
        return {
            one.row.job: [
                *_cells(one, times[one.row.job].seconds, allowed.get(one.row.job), context),
                *(_wide_cells(one) if self.form is ListFormat.WIDE else ()),
            ]
            for one in found
        }

    async def _print_objects(self, store: Store, found: Sequence[ListedJob]) -> None:
        runs = {one.run.run: one.run for one in found}
        items = [item for run in runs.values() for item in await job_view.run_objects(store, run)]
        if self.wanted is not None:
            items = [item for item in items if item["status"]["phase"] in self.filters.states]
        typer.echo(formatting.as_document({"items": items}, is_yaml=self.form is ListFormat.YAML))


def _jobs_of(run: RunRow, rows: Sequence[JobRow]) -> list[ListedJob]:
    ended = _counted(row for row in rows if row.state in states.TERMINAL_STATES)
    commands = _counted(rows)
    return [ListedJob(run, row, ended[row.job], commands[row.job]) for row in rows]


def _counted(rows: Iterable[JobRow]) -> Counter[JobId | None]:
    """Count the commands of each group; a workflow includes those of its arrays."""
    counts: Counter[JobId | None] = Counter()
    for row in rows:
        if row.kind is Kind.JOB:
            counts.update({row.group_id, row.run})
    return counts


def _cells(
    one: ListedJob, took: float | None, allowed: str | None, context: QueueContext
) -> Sequence[str]:
    row, is_command = one.row, one.row.kind is Kind.JOB
    return (
        one.name,
        row.state,
        "" if is_command else f"{one.ended:,}/{one.commands:,}",
        str(row.attempts) if is_command else "",
        "" if took is None else formatting.seconds(took),
        formatting.age(one.run.submitted_at, context.now),
        explain.brief(row, context) or allowed or formatting.reason(row),
    )


def _wide_cells(one: ListedJob) -> Sequence[str]:
    row, is_command = one.row, one.row.kind is Kind.JOB
    return (
        str(row.job),
        row.pool if is_command else "",
        str(row.priority),
        row.worker or "",
        "" if row.exit_code is None else str(row.exit_code),
        base.format_timestamp(one.run.submitted_at.replace(microsecond=0)),
    )
