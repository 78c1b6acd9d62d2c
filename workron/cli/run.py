"""`workron run`: runs the jobs of manifest files on this machine and waits for their end.

One process submits the files, runs a worker for each pool that they name, runs a maintainer, and
shows progress until all runs have ended, a signal arrives, or the store fails. With a store that
outlives the process, the same command resumes: jobs that ended before do not run again.
"""

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
from workron.cli.local_workers import (
    LocalWorkers,
    ensure_pools,
    make_executor,
    require_temporary_folder,
)
from workron.cli.options import OutputFormat
from workron.cli.output import OutputDir
from workron.cli.progress import ProgressLines, ProgressTable, RunFeed
from workron.cli.signals import RunSignals
from workron.cli.stores import opened_for_run, run_command
from workron.core import errors, ids, states
from workron.scheduling import job_view, submit, wait
from workron.scheduling.maintainer import Maintainer
from workron.scheduling.wait import StoreOutage
from workron.store import connect
from workron.telemetry import logging
from workron_runner.sandbox import make_undumpable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from workron.cli.progress import RunSnapshot
    from workron.scheduling.submit import Request, Submission
    from workron.store.api import Store
    from workron.store.types import RunRow


_MAX_NAMES: Final = 3


class ProgressView(Protocol):
    """Shows progress: a live table on a terminal, else lines."""

    def show(self, snapshot: RunSnapshot) -> None:
        """Show a new snapshot."""

    def say(self, text: str) -> None:
        """Show a message about the run itself."""


async def execute(
    store: Store, feed: RunFeed, workers: LocalWorkers, *, boot: UUID, view: ProgressView
) -> tuple[RunSnapshot, int | None]:
    """Work until the runs have ended; return a snapshot, and an exit code if it was cut short."""
    interrupt = RunSignals(workers, view.say)
    outage = StoreOutage(system_clock.CLOCK, view.say)
    working = asyncio.create_task(workers.run())
    tasks = [
        working,
        asyncio.create_task(wait.wait(store, [root.run for root in feed.roots], outage)),
        asyncio.create_task(Maintainer(store, system_clock.CLOCK, boot).run(store.wait_for_work)),
        asyncio.create_task(_show_progress(feed, outage, view)),
    ]
    try:
        with interrupt.listening():
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
            _finish(workers, interrupt, view)
            await working
    except errors.StoreError:
        await _stop_workers(workers, working)
        raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    snapshot = await outage.retry(feed.read)
    view.show(snapshot)
    has_ended = all(run.row.state in states.TERMINAL_STATES for run in snapshot.runs)
    return snapshot, None if has_ended else interrupt.exit_code or exit_codes.FAILED


def _finish(workers: LocalWorkers, interrupt: RunSignals, view: ProgressView) -> None:
    """Drain; jobs that still run belong to other runs."""
    others = workers.names()
    if others and interrupt.exit_code is None:
        view.say(f"finishing {_listed(others)} of other runs; press Ctrl-C to requeue them")
        interrupt.may_finish = False
    workers.drain()


async def _stop_workers(workers: LocalWorkers, working: asyncio.Task[None]) -> None:
    """Stop running jobs as a second Ctrl-C does, as far as the store allows."""
    workers.kill()
    with contextlib.suppress(errors.StoreError):
        await working


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


async def _show_progress(feed: RunFeed, outage: StoreOutage, view: ProgressView) -> None:
    while True:
        view.show(await outage.retry(feed.read))
        await asyncio.sleep(feed.pause_seconds)


_RESUMABLE: Final = "not all jobs have run; repeat the same command to resume"
_NOT_RESUMABLE: Final = "not all jobs have run; use --store sqlite:///path to be able to resume"


@dataclass(frozen=True, slots=True)
class _Settings:
    store: str
    slots: int
    output_dir: OutputDir | None
    console: Console
    is_json: bool

    @property
    def is_memory(self) -> bool:
        """Whether the store ends with this process."""
        return connect.is_memory(self.store)

    @property
    def resume_hint(self) -> str:
        """Return a hint for the user when not all jobs have run."""
        return _NOT_RESUMABLE if self.is_memory else _RESUMABLE

    def say(self, text: str) -> None:
        """Print a message."""
        self.console.print(Text(text), soft_wrap=True)

    def note(self, text: str) -> None:
        """Print a message that may need attention."""
        self.console.print(Text(text, style="yellow"), soft_wrap=True)


def run(
    paths: options.Files,
    store: options.RunStore = "memory:",
    namespace: options.FileNamespace = None,
    slots: options.Slots = None,
    output_dir: Annotated[
        Path | None, typer.Option(help="Write the output of each job to a file in this folder.")
    ] = None,
    output: options.Output = OutputFormat.TABLE,
) -> None:
    """Run jobs and workflows from manifest files on this machine.

    The default store is in memory and keeps nothing. With --store, repeating the command resumes
    an interrupted run: jobs that have ended do not run again. The worker also runs other ready jobs
    in the same pools of that store. Ctrl-C waits for running jobs; a second Ctrl-C stops them.
    Exits with 1 if a job or workflow failed. A failed task that another task handles (when: Failed
    or Finished) does not fail the workflow.
    """
    make_undumpable()
    logging.configure()
    settings = _Settings(
        store=options.check_store_url(store),
        slots=options.slots(slots),
        output_dir=OutputDir(output_dir) if output_dir else None,
        # Progress goes to standard error, so that standard output is only JSON.
        console=Console(stderr=output is OutputFormat.JSON, highlight=False),
        is_json=output is OutputFormat.JSON,
    )
    request = manifest_files.request(paths, namespace)
    if not request.plans:
        raise errors.InputError("these files contain no Job and no Workflow: nothing to run")
    require_temporary_folder()
    # Output that has arrived is written to its files however the run ends.
    with settings.output_dir or contextlib.nullcontext():
        code = run_command(_run(request, settings))
    raise typer.Exit(code)


async def _run(request: Request, settings: _Settings) -> int:
    if settings.is_memory:
        submit.refuse_missing_upstreams(request.plans)
    async with opened_for_run(settings.store) as store:
        for line in await local_workers.reap_dead_workers(store):
            settings.note(line)
        for _, name in sorted(request.pools):
            settings.note(formatting.ignored_pool(name))
        feed = await _submit(store, request, settings)
        for line in await submit.missing_upstream_notes(store, request.plans):
            settings.note(line)
        before, began = feed.ended, system_clock.CLOCK.monotonic()
        snapshot, exit_code = await _run_workers(store, request, feed, settings)
        seconds = system_clock.CLOCK.monotonic() - began
        await summary.print_summary(settings.console, store, snapshot.runs, seconds, before)
        await _write_results(store, snapshot, settings)
        if exit_code is None:
            return summary.exit_code(run.row for run in snapshot.runs)
        if exit_code == exit_codes.FAILED:
            settings.say("this worker was drained by another process and takes no more jobs")
        settings.say(settings.resume_hint)
        return exit_code


async def _submit(store: Store, request: Request, settings: _Settings) -> RunFeed:
    """Submit; of a run that exists already, only new events will be shown."""
    submissions = await submit.submit(store, request)
    found = [await _root(store, one) for one in submissions]
    feed = RunFeed(store, system_clock.CLOCK, found)
    for root, one in zip(found, submissions, strict=True):
        if one.is_existing:
            run = await feed.start_from(root)
            ended = f": {run.ended:,} of {run.total:,} jobs have ended" if run.ended else ""
            settings.note(f"resuming {root.name}{ended}")
    return feed


async def _root(store: Store, one: Submission) -> RunRow:
    who = one.identity
    root = await store.find_run(who.namespace, who.kind, who.name)
    if root is None or root.run != one.run:
        raise errors.StateError(f"{who.kind} {who.name!r} was replaced by another run")
    return root


async def _run_workers(
    store: Store, request: Request, feed: RunFeed, settings: _Settings
) -> tuple[RunSnapshot, int | None]:
    output_dir = settings.output_dir
    if output_dir is not None:
        for root in feed.roots:
            output_dir.expect(root, await store.list_jobs(root.run))
    boot = ids.mint_uuid(system_clock.RNG)
    listener = output_dir.listener if output_dir else None
    workers = LocalWorkers(store, make_executor(boot), settings.slots, listener=listener)
    with contextlib.closing(workers):
        workers.add_agents(await ensure_pools(store, sorted(request.wanted_pools)))
        try:
            with await _view(store, feed.roots, settings) as view:
                return await execute(store, feed, workers, boot=boot, view=view)
        except errors.StoreError:
            settings.say(settings.resume_hint)
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


async def _write_results(store: Store, snapshot: RunSnapshot, settings: _Settings) -> None:
    if settings.output_dir is not None:
        await settings.output_dir.complete(store, snapshot.runs)
        if settings.output_dir.error:
            settings.say(f"some output was not written: {settings.output_dir.error}")
    if settings.is_json:
        items = [
            item for run in snapshot.runs for item in await job_view.run_objects(store, run.root)
        ]
        typer.echo(json.dumps({"items": items}, indent=2))
