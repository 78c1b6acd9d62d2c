"""`workron get`: what there is, as a table or as objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from workron.cli import options, reference, system, words
from workron.cli.opening import carry_out, opened
from workron.cli.options import Format
from workron.core import states
from workron.core.plan import Kind
from workron.scheduling import get as scheduling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from workron.store.protocol import JobRow, RootRow, Store

_TITLES: Final = ("NAME", "STATUS", "JOBS", "ATTEMPTS", "TOOK", "AGE", "REASON")
_GAP: Final = "   "


def get(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[KIND/]NAME", help="One of them, with its jobs. Default: all."),
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
    wanted = None if name is None else reference.parse_root(name)
    carry_out(_get(url, namespace, wanted, output))


async def _get(
    url: str, namespace: str, wanted: reference.Reference | None, output: Format
) -> None:
    async with opened(url) as store:
        roots: Sequence[RootRow]
        if wanted is None:
            roots = await store.roots(namespace)
        else:
            roots = [await reference.find(store, namespace, wanted)]
        if output is Format.JSON:
            items = [item for root in roots for item in await scheduling.get(store, root)]
            typer.echo(json.dumps({"items": items}, indent=2))
        elif roots:
            _print(await _lines(store, roots, is_deep=wanted is not None))
        else:
            typer.echo(f"nothing in namespace {namespace!r}", err=True)


async def _lines(
    store: Store, roots: Sequence[RootRow], *, is_deep: bool
) -> Sequence[Sequence[Text]]:
    lines = [[Text(title, style="dim") for title in _TITLES]]
    for root in roots:
        rows = await store.jobs(root.root)
        lines += [list(_cells(root, row, rows)) for row in (rows if is_deep else rows[:1])]
    return lines


def _cells(root: RootRow, row: JobRow, rows: Sequence[JobRow]) -> Iterator[Text]:
    seconds = words.took(row)
    kind = f"{root.kind.lower()}/" if row.job == root.root else ""
    yield Text(kind + words.path(root, row))
    yield Text(str(row.state), style=words.COLOURS[row.state])
    yield Text(_progress(row, rows))
    yield Text(str(row.attempts) if row.kind is Kind.JOB else "")
    yield Text("" if seconds is None else words.span(seconds))
    yield Text(words.age(root.submitted_at, system.CLOCK.now()))
    yield Text(words.why(row))


def _progress(row: JobRow, rows: Sequence[JobRow]) -> str:
    if row.kind is Kind.JOB:
        return ""
    is_workflow = row.kind is Kind.WORKFLOW
    members = [
        one for one in rows if one.kind is Kind.JOB and (is_workflow or one.member_of == row.job)
    ]
    return f"{sum(one.state in states.ENDS for one in members):,}/{len(members):,}"


def _print(lines: Sequence[Sequence[Text]]) -> None:
    widths = [max(cell.cell_len for cell in column) for column in zip(*lines, strict=True)]
    console = Console(highlight=False)
    for line in lines:
        for cell, width in zip(line, widths, strict=True):
            cell.pad_right(width - cell.cell_len)
        whole = Text(_GAP).join(line)
        whole.rstrip()
        # A terminal wraps what is too long by itself, and who reads a pipe wants whole lines.
        console.print(whole, soft_wrap=True)
