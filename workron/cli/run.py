"""`workron run`: the jobs of some files, from the first to the last, on this machine."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.text import Text

from workron.cli import files, options, recovery, summary, system
from workron.cli.board import Board
from workron.cli.crew import Crew
from workron.cli.lines import Lines
from workron.cli.opening import carry_out, opened_for_run
from workron.cli.options import Format
from workron.cli.output_dir import OutputDir
from workron.cli.performance import perform
from workron.core import errors, ids
from workron.scheduling import get, loose_ends, submit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.cli.feed import Look
    from workron.cli.performance import View
    from workron.scheduling.submit import Request
    from workron.store.protocol import RootRow, Store


_RESUMABLE: Final = "not all has run; the same command goes on from here"
_IN_VAIN: Final = "not all has run, and nothing is kept: with --store sqlite:///path it would be"


@dataclass(frozen=True, slots=True)
class _Settings:
    store: str
    slots: int
    output_dir: OutputDir | None
    console: Console
    is_json: bool


def run(
    paths: options.Files,
    store: options.Store = "memory:",
    namespace: options.FileNamespace = None,
    slots: Annotated[
        int | None, typer.Option(min=1, max=1000, help="Commands at once; default: the CPUs.")
    ] = None,
    output_dir: Annotated[
        Path | None, typer.Option(help="Write the output of each job to a file of this folder.")
    ] = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Run the jobs of some files on this machine, and wait for their end.

    With a store in memory nothing is left behind. With a file or a database, the same command
    goes on where a killed one was: what has ended is not run again. Ctrl-C lets running commands
    finish; a second one ends them. Exits with 1 if a job failed.
    """
    settings = _Settings(
        store=store or "memory:",
        slots=slots or os.cpu_count() or 1,
        output_dir=OutputDir(output_dir) if output_dir else None,
        # Progress must not get between a program and the JSON that it reads.
        console=Console(stderr=output is Format.JSON, highlight=False),
        is_json=output is Format.JSON,
    )
    request = files.request(paths, namespace)
    if not request.plans:
        raise errors.InputError("there is no Job and no Workflow in these files: nothing to run")
    raise typer.Exit(carry_out(_run(request, settings)))


async def _run(request: Request, settings: _Settings) -> int:
    is_memory = settings.store.startswith("memory:")
    if is_memory:
        loose_ends.refuse(request.plans)
    async with opened_for_run(settings.store) as store:
        notes = list(await recovery.recover(store))
        roots = await _submit(store, request, notes)
        notes += await loose_ends.told(store, request.plans)
        for note in notes:
            settings.console.print(Text(note, style="yellow"), soft_wrap=True)
        began = system.CLOCK.monotonic()
        look, cut_short = await _perform(store, request, roots, settings)
        await _tell(store, look, settings, system.CLOCK.monotonic() - began)
        if cut_short is not None:
            _print(settings.console, _IN_VAIN if is_memory else _RESUMABLE)
            return cut_short
        return summary.exit_code(run.row for run in look.runs)


async def _submit(store: Store, request: Request, notes: list[str]) -> Sequence[RootRow]:
    roots = []
    for one in await submit.submit(store, request):
        who = one.identity
        root = await store.find(who.namespace, who.kind, who.name)
        if root is None or root.root != one.root:
            raise errors.StateError(f"{who.kind} {who.name!r} was replaced by another run")
        if one.effect is not submit.Effect.BEGUN:
            notes.append(f"going on with {who.name}, which was begun before")
        roots.append(root)
    return roots


async def _perform(
    store: Store, request: Request, roots: Sequence[RootRow], settings: _Settings
) -> tuple[Look, int | None]:
    output_dir = settings.output_dir
    if output_dir is not None:
        for root in roots:
            output_dir.expect(root, await store.jobs(root.root))
    boot = ids.mint_uuid(system.RNG)
    crew = Crew(store, boot, settings.slots, output_dir.listener if output_dir else None)
    with contextlib.closing(crew):
        await crew.hire(sorted(request.wanted_pools))
        with await _view(store, roots, settings.console) as view:
            return await perform(store, roots, crew, boot=boot, view=view)


async def _view(
    store: Store, roots: Sequence[RootRow], console: Console
) -> contextlib.AbstractContextManager[View]:
    if not console.is_terminal:
        return contextlib.nullcontext(Lines(lambda text: _print(console, text)))
    specs: dict[Any, Any] = {}
    for root in roots:
        specs |= await store.specs(root.root)
    return Board(console, system.CLOCK, specs)


async def _tell(store: Store, look: Look, settings: _Settings, seconds: float) -> None:
    await summary.tell(settings.console, store, look.runs, seconds)
    if settings.output_dir is not None:
        await settings.output_dir.complete(store, look.runs)
        if settings.output_dir.trouble:
            _print(settings.console, f"not all output was written: {settings.output_dir.trouble}")
    if settings.is_json:
        items = [item for run in look.runs for item in await get.get(store, run.root)]
        typer.echo(json.dumps({"items": items}, indent=2))


def _print(console: Console, text: str) -> None:
    console.print(Text(text), soft_wrap=True)
