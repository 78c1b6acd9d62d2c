"""`workron get`: what there is, as a table or as objects."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from workron.cli import options, reference, system, table, words
from workron.cli.opening import carry_out, opened
from workron.cli.options import Format
from workron.core import states
from workron.core.plan import Kind
from workron.scheduling import explain, span, surroundings

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from workron.core.ids import JobId
    from workron.scheduling.span import Span
    from workron.scheduling.surroundings import Surroundings
    from workron.store.protocol import JobRow, RootRow, Store

_TITLES: Final = ("NAME", "STATUS", "JOBS", "ATTEMPTS", "TOOK", "AGE", "REASON")


def get(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND/][NAMESPACE/]NAME", help="One of them, with its jobs. Default: all."
        ),
    ] = None,
    store: options.Store = None,
    namespace: options.Namespace = "default",
    output: options.Output = Format.TABLE,
) -> None:
    """List jobs and workflows, or one of them with all its jobs.

    JSON is {"items": [...]} of objects in the shape of their manifests, with a status; the jobs of
    a workflow are among them.
    """
    url = options.lasting(store)
    wanted = None if name is None else reference.parse(name)
    carry_out(_get(url, namespace, wanted, output))


async def _get(
    url: str, namespace: str, wanted: reference.Reference | None, output: Format
) -> None:
    async with opened(url) as store:
        if output is Format.JSON:
            items = await _items(store, await _roots(store, namespace, wanted))
            typer.echo(json.dumps({"items": items}, indent=2))
            return
        lines = list(await _lines(store, namespace, wanted))
    if lines:
        table.show(_TITLES, lines, words.COLOURS)
    else:
        typer.echo(f"nothing in namespace {namespace!r}", err=True)


async def _roots(
    store: Store, namespace: str, wanted: reference.Reference | None
) -> Sequence[RootRow]:
    if wanted is None:
        return await store.roots(namespace)
    return [await reference.find_root(store, namespace, wanted)]


async def _items(store: Store, roots: Sequence[RootRow]) -> list[dict[str, Any]]:
    from workron.scheduling import get as scheduling

    return [item for root in roots for item in await scheduling.get(store, root)]


async def _lines(
    store: Store, namespace: str, wanted: reference.Reference | None
) -> Iterable[Sequence[str]]:
    if wanted is None:
        heads = await store.heads(namespace)
        spans = await span.each(store, [one.row for one in heads])
        around = await surroundings.look(store, namespace, system.CLOCK.now())
        return (
            _line(one.root, one.row, spans[one.row.job], one.ended, one.commands, around)
            for one in heads
        )
    root = await reference.find_root(store, namespace, wanted)
    rows = await store.jobs(root.root)
    ended, commands = _counted(row for row in rows if row.state in states.ENDS), _counted(rows)
    spans = await span.each(store, rows)
    around = await surroundings.look(store, root.namespace, system.CLOCK.now(), root)
    return (
        _line(root, row, spans[row.job], ended[row.job], commands[row.job], around) for row in rows
    )


def _counted(rows: Iterable[JobRow]) -> Counter[JobId | None]:
    """Count the commands of each group: a workflow's are those of its arrays as well."""
    counts: Counter[JobId | None] = Counter()
    for row in rows:
        if row.kind is Kind.JOB:
            counts.update({row.member_of, row.root})
    return counts


def _line(
    root: RootRow, row: JobRow, took: Span, ended: int, commands: int, around: Surroundings
) -> Sequence[str]:
    is_command = row.kind is Kind.JOB
    kind = f"{root.kind.lower()}/" if row.job == root.root else ""
    return (
        kind + words.path(root, row),
        row.state,
        "" if is_command else f"{ended:,}/{commands:,}",
        str(row.attempts) if is_command else "",
        "" if took.seconds is None else words.span(took.seconds),
        words.age(root.submitted_at, around.now),
        explain.brief(row, around) or words.why(row),
    )
