"""`workron run`: the jobs of some files, from the first to the last, on this machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol

import typer
from rich.console import Console
from rich.text import Text

from workron.cli import (
    exit_codes,
    formatting,
    local_workers,
    manifest_files,
    options,
    summary,
    system_clock,
)
from workron.cli.local_workers import LocalWorkers, executor_of, need_temporary_folder, tokens_of
from workron.cli.options import Format
from workron.cli.output import OutputDir
from workron.cli.progress import ProgressLines, ProgressTable, RunFeed
from workron.cli.signals import RunSignals
from workron.cli.stores import carry_out, opened_for_run
from workron.core import errors, ids, states
from workron.scheduling import job_view, submit, wait
from workron.scheduling.maintainer import Maintainer
from workron.scheduling.wait import StoreOutage
from workron.store import connect
from workron.telemetry import logging
from workron_runner.sandbox import hide

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from workron.cli.progress import RunSnapshot
    from workron.scheduling.submit import Request, Submission
    from workron.store.api import Store
    from workron.store.types import RunRow


_MOST_NAMED: Final = 3


class ProgressView(Protocol):
    """What shows the progress."""

    def show(self, look: RunSnapshot) -> None:
        """Show what is there now."""

    def say(self, text: str) -> None:
        """Show a line about the run itself."""


async def execute(
    store: Store, feed: RunFeed, crew: LocalWorkers, *, boot: UUID, view: ProgressView
) -> tuple[RunSnapshot, int | None]:
    """Run until the roots have ended; answer how they stand, and a code if that was cut short."""
    interrupt = RunSignals(crew, view.say)
    outage = StoreOutage(system_clock.CLOCK, view.say)
    working = asyncio.create_task(crew.run())
    tasks = [
        working,
        asyncio.create_task(wait.wait(store, [root.run for root in feed.roots], outage)),
        asyncio.create_task(Maintainer(store, system_clock.CLOCK, boot).run(store.wait_for_work)),
        asyncio.create_task(_watch(feed, outage, view)),
    ]
    try:
        with interrupt.listening():
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
            _finish(crew, interrupt, view)
            await working
    except errors.StoreError:
        await _give_up(crew, working)
        raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    look = await outage.bear(feed.look)
    view.show(look)
    has_ended = all(run.row.state in states.TERMINAL_STATES for run in look.runs)
    return look, None if has_ended else interrupt.exit_code or exit_codes.FAILED


def _finish(crew: LocalWorkers, interrupt: RunSignals, view: ProgressView) -> None:
    """Take no more; what still runs belongs to others, for all that was asked for has ended."""
    others = crew.names()
    if others and interrupt.exit_code is None:
        view.say(f"finishing {_listed(others)}, not of this run; Ctrl-C hands it back")
        interrupt.is_patient = False
    crew.drain()


async def _give_up(crew: LocalWorkers, working: asyncio.Task[None]) -> None:
    """End what runs as softly as a second Ctrl-C does, as far as the store lets us."""
    crew.kill()
    with contextlib.suppress(errors.StoreError):
        await working


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


async def _watch(feed: RunFeed, outage: StoreOutage, view: ProgressView) -> None:
    while True:
        view.show(await outage.bear(feed.look))
        await asyncio.sleep(feed.pause_seconds)


_RESUMABLE: Final = "not all has run; the same command goes on from here"
_IN_VAIN: Final = "not all has run, and nothing is kept: with --store sqlite:///path it would be"


@dataclass(frozen=True, slots=True)
class _Settings:
    store: str
    slots: int
    output_dir: OutputDir | None
    console: Console
    is_json: bool

    @property
    def is_memory(self) -> bool:
        """Whether nothing is kept."""
        return connect.is_memory(self.store)

    @property
    def outlook(self) -> str:
        """What is to be said when not all has run."""
        return _IN_VAIN if self.is_memory else _RESUMABLE

    def say(self, text: str) -> None:
        """Print a line about the run itself."""
        self.console.print(Text(text), soft_wrap=True)

    def note(self, text: str) -> None:
        """Print a line that is worth a look."""
        self.console.print(Text(text, style="yellow"), soft_wrap=True)


def run(
    paths: options.Files,
    store: options.RunStore = "memory:",
    namespace: options.FileNamespace = None,
    slots: options.Slots = None,
    output_dir: Annotated[
        Path | None, typer.Option(help="Write the output of each job to a file of this folder.")
    ] = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Run the jobs of some files on this machine, and wait for their end.

    With a store in memory nothing is left behind. With a file or a database, the same command
    goes on where a killed one was: what has ended is not run again. Whatever else is ready in that
    store and in the pools of these jobs may be run here as well. Ctrl-C lets running commands
    finish; a second one ends them. Exits with 1 if a Job or a Workflow did not succeed; a task that
    failed and that another one is for (when: Failed or Finished) is no failure of its Workflow.
    """
    hide()
    logging.configure()
    settings = _Settings(
        store=options.named(store),
        slots=options.slots(slots),
        output_dir=OutputDir(output_dir) if output_dir else None,
        # Progress must not get between a program and the JSON that it reads.
        console=Console(stderr=output is Format.JSON, highlight=False),
        is_json=output is Format.JSON,
    )
    request = manifest_files.request(paths, namespace)
    if not request.plans:
        raise errors.InputError("there is no Job and no Workflow in these files: nothing to run")
    need_temporary_folder()
    # Whatever ends it, what was heard is written first.
    with settings.output_dir or contextlib.nullcontext():
        code = carry_out(_run(request, settings))
    raise typer.Exit(code)


async def _run(request: Request, settings: _Settings) -> int:
    if settings.is_memory:
        submit.refuse_missing_upstreams(request.plans)
    async with opened_for_run(settings.store) as store:
        for line in await local_workers.recover(store):
            settings.note(line)
        for _, name in sorted(request.pools):
            settings.note(formatting.pool_left_alone(name))
        feed = await _begin(store, request, settings)
        for line in await submit.missing_upstream_notes(store, request.plans):
            settings.note(line)
        before, began = feed.ended, system_clock.CLOCK.monotonic()
        look, cut_short = await _perform(store, request, feed, settings)
        seconds = system_clock.CLOCK.monotonic() - began
        await summary.tell(settings.console, store, look.runs, seconds, before)
        await _hand_over(store, look, settings)
        if cut_short is None:
            return summary.exit_code(run.row for run in look.runs)
        if cut_short == exit_codes.FAILED:
            settings.say("somebody drained this worker: it takes no more jobs")
        settings.say(settings.outlook)
        return cut_short


async def _begin(store: Store, request: Request, settings: _Settings) -> RunFeed:
    """Submit; of what was begun before, only what happens from now on will be told."""
    submissions = await submit.submit(store, request)
    found = [await _root(store, one) for one in submissions]
    feed = RunFeed(store, system_clock.CLOCK, found)
    for root, one in zip(found, submissions, strict=True):
        if one.is_existing:
            run = await feed.pass_over(root)
            told = f": {run.ended:,} of {run.total:,} jobs had ended" if run.ended else ""
            settings.note(f"going on with {root.name}, which was begun before{told}")
    return feed


async def _root(store: Store, one: Submission) -> RunRow:
    who = one.identity
    root = await store.find_run(who.namespace, who.kind, who.name)
    if root is None or root.run != one.run:
        raise errors.StateError(f"{who.kind} {who.name!r} was replaced by another run")
    return root


async def _perform(
    store: Store, request: Request, feed: RunFeed, settings: _Settings
) -> tuple[RunSnapshot, int | None]:
    output_dir = settings.output_dir
    if output_dir is not None:
        for root in feed.roots:
            output_dir.expect(root, await store.list_jobs(root.run))
    boot = ids.mint_uuid(system_clock.RNG)
    listener = output_dir.listener if output_dir else None
    crew = LocalWorkers(store, executor_of(boot), settings.slots, listener=listener)
    with contextlib.closing(crew):
        crew.hire(await tokens_of(store, sorted(request.wanted_pools)))
        try:
            with await _view(store, feed.roots, settings) as view:
                return await execute(store, feed, crew, boot=boot, view=view)
        except errors.StoreError:
            settings.say(settings.outlook)
            raise


async def _view(
    store: Store, roots: Sequence[RunRow], settings: _Settings
) -> contextlib.AbstractContextManager[ProgressView]:
    if not settings.console.is_terminal:
        return contextlib.nullcontext(ProgressLines(settings.say))
    specs: dict[Any, Any] = {}
    for root in roots:
        specs |= await store.list_specs(root.run)
    return ProgressTable(settings.console, system_clock.CLOCK, specs)


async def _hand_over(store: Store, look: RunSnapshot, settings: _Settings) -> None:
    if settings.output_dir is not None:
        await settings.output_dir.complete(store, look.runs)
        if settings.output_dir.trouble:
            settings.say(f"not all output was written: {settings.output_dir.trouble}")
    if settings.is_json:
        items = [item for run in look.runs for item in await job_view.run_objects(store, run.root)]
        typer.echo(json.dumps({"items": items}, indent=2))
