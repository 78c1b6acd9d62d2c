"""`workron run`: runs the jobs of manifest files on this machine and waits for their end.

One process submits the files, runs a worker for each pool that they name, runs a maintainer, and
shows progress until all runs have ended, a signal arrives, or the store fails. With a store that
outlives the process, the same command resumes: jobs that ended before do not run again.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

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
from workron.cli.caller_environment import CallerEnvironment
from workron.cli.live_output import LiveOutput
from workron.cli.local_workers import LocalWorkers
from workron.cli.options import OutputFormat
from workron.cli.output import OutputDir
from workron.cli.output_writer import OutputWriter
from workron.cli.progress import RunFeed
from workron.cli.progress_lines import ProgressLines
from workron.cli.progress_table import ProgressTable
from workron.cli.signals import RunSignals, listening_for_signals
from workron.cli.stores import opened_for_run
from workron.core import errors, ids, states
from workron.core.plan import Kind
from workron.scheduling import submit, wait
from workron.scheduling.maintainer import Maintainer
from workron.scheduling.wait import StoreOutage
from workron.store import connect
from workron.telemetry import logging
from workron_runner.sandbox import make_undumpable
from workron_worker.output_stream import tee_output
from workron_worker.runner_client import RunnerExecutor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from workron.cli.caller_environment import RunVariables
    from workron.cli.progress import RunSnapshot
    from workron.scheduling.submit import Request
    from workron.store.api import Store
    from workron.store.types import ClaimedJob
    from workron_worker.executor import OnOutput


_MAX_NAMES: Final = 3
_RESUMABLE: Final = "not all jobs have run; repeat the same command to resume"
_NOT_RESUMABLE: Final = "not all jobs have run; use --store sqlite:///path to be able to resume"


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The options of one `workron run`."""

    store: str
    slots: int
    output_dir: OutputDir | None
    console: Console
    writer: OutputWriter | None
    """Writes what the console prints; None: the console shows a table, and writes itself."""
    live_output: LiveOutput | None
    has_results: bool
    is_json: bool

    def say(self, text: str, style: str = "") -> None:
        """Print a message."""
        self.print(Text(text, style=style))

    def print(self, text: Text) -> None:
        """Print a text whose lines are not wrapped."""
        self.console.print(text, soft_wrap=True)

    def note(self, text: str) -> None:
        """Print a message that may need attention."""
        self.say(text, "yellow")

    def say_how_to_resume(self) -> None:
        """Print a hint for the user when not all jobs have run."""
        text = _NOT_RESUMABLE if connect.is_memory(self.store) else _RESUMABLE
        if self.writer is not None and self.writer.error is not None:
            what = "was closed by its reader" if self.writer.is_closed_by_reader else "failed"
            with contextlib.suppress(OSError):
                typer.echo(f"workron: standard output {what}; {text}", err=True)
        else:
            self.say(text)


def run(  # noqa: PLR0913, PLR0917 - one for each option
    paths: options.Files,
    store: Annotated[str, options.store_option(callback=options.check_store_url)] = "memory:",
    namespace: options.FileNamespace = None,
    slots: options.Slots = None,
    output_dir: Annotated[
        Path | None, typer.Option(help="Write the output of each job to a file in this folder.")
    ] = None,
    env_file: options.EnvFiles = None,
    output: options.Output = OutputFormat.TABLE,
    logs: Annotated[
        bool, typer.Option("--logs", help="Print the output of all jobs as it comes.")
    ] = False,
    results: Annotated[
        bool, typer.Option("--results", help="Print the results of the jobs at the end.")
    ] = False,
) -> None:
    """Run jobs and workflows from manifest files on this machine.

    The default store is in memory and keeps nothing. With --store, repeating the command resumes
    an interrupted run: jobs that have ended do not run again. The worker also runs other ready jobs
    in the same pools of that store. Ctrl-C waits for running jobs; a second Ctrl-C stops them.
    The output of a single Job is printed as it comes; with --logs, that of all jobs, each line
    behind the name of its job. If the reader of the output closes it, running jobs are stopped.
    Exits with 1 if a job failed, unless its task has allowFailure or its array has maxFailures.
    """
    make_undumpable()
    logging.configure()
    folder = OutputDir(output_dir) if output_dir else None
    caller = CallerEnvironment.read(env_file or (), os.environ)
    request = manifest_files.request(paths, namespace, is_local=True, caller=caller)
    if not request.plans:
        raise errors.InputError("these files contain no Job and no Workflow: nothing to run")
    local_workers.require_temporary_folder()
    is_json = output is OutputFormat.JSON
    console, writer, live_output = _terminal(request, has_logs=logs, is_json=is_json)
    settings = RunSettings(
        store, options.slots(slots), folder, console, writer, live_output, results, is_json
    )
    # Output that has arrived is written to its files however the run ends.
    with folder or contextlib.nullcontext(), writer or contextlib.nullcontext():
        code = asyncio.run(_run(request, settings, caller.of_runs(request)))
    if writer is not None and writer.error is not None and not writer.is_closed_by_reader:
        raise writer.error
    raise typer.Exit(code)


def _terminal(
    request: Request, *, has_logs: bool, is_json: bool
) -> tuple[Console, OutputWriter | None, LiveOutput | None]:
    """Return the console; the writer behind it, if it has no table; and what prints output."""
    is_single = [plan.identity.kind for plan in request.plans] == [Kind.JOB]
    # Progress goes to standard error, so that standard output is only JSON.
    stream = (sys.stderr if is_json else sys.stdout) or Path(os.devnull).open("w")  # noqa: SIM115
    console = Console(file=stream, highlight=False)
    if stream.isatty() and not (is_single or has_logs or console.is_dumb_terminal):
        return console, None, None
    writer = OutputWriter(stream)
    console = Console(file=writer.as_file(), highlight=False)
    if not (is_single or has_logs):
        return console, writer, None
    return console, writer, LiveOutput(writer, console, has_names=not is_single)


async def _run(request: Request, settings: RunSettings, variables: RunVariables) -> int:
    if connect.is_memory(settings.store):
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
        snapshot, exit_code = await _run_workers(store, request, feed, settings, variables)
        seconds = system_clock.CLOCK.monotonic() - began
        await summary.print_summary(settings.console, store, snapshot.runs, seconds, before)
        for line in summary.next_steps(snapshot.runs, settings.store):
            settings.say(line)
        await _write_results(store, feed, snapshot, settings)
        if exit_code is None:
            return summary.exit_code(observed.row for observed in snapshot.runs)
        if exit_code == exit_codes.FAILED:
            settings.say("this worker was drained by another process and takes no more jobs")
        settings.say_how_to_resume()
        return exit_code


async def _submit(store: Store, request: Request, settings: RunSettings) -> RunFeed:
    """Submit; of a run that exists already, only new events will be shown."""
    submissions = await submit.submit(store, request)
    runs = []
    for one in submissions:
        identity = one.identity
        run = await store.find_run(identity.namespace, identity.kind, identity.name)
        if run is None or run.run != one.run:
            raise errors.StateError(
                f"{identity.kind} {identity.name!r} was replaced by another run"
            )
        runs.append(run)
    feed = RunFeed(store, system_clock.CLOCK, runs)
    for run, one in zip(runs, submissions, strict=True):
        if one.is_existing:
            observed = await feed.start_from(run)
            total = len(observed.commands)
            ended = f": {observed.ended:,} of {total:,} jobs have ended" if observed.ended else ""
            settings.note(f"resuming {run.name}{ended}")
    return feed


async def _run_workers(
    store: Store, request: Request, feed: RunFeed, settings: RunSettings, variables: RunVariables
) -> tuple[RunSnapshot, int | None]:
    boot = ids.mint_uuid(system_clock.RNG)
    workers = LocalWorkers(
        store,
        RunnerExecutor(grace=system_clock.KILL_GRACE, boot=boot),
        settings.slots,
        listener=await _listener(store, feed, settings),
        variables=variables,
    )
    with contextlib.closing(workers):
        pools = sorted(request.wanted_pools)
        workers.add_agents(await local_workers.ensure_pools(store, pools))
        try:
            if settings.writer is not None:
                lines = ProgressLines(settings.print, has_output=settings.live_output is None)
                return await _execute(store, feed, workers, boot, lines, settings)
            specs = [await store.list_specs(run.run) for run in feed.runs]
            known = {job: spec for one in specs for job, spec in one.items()}
            with ProgressTable(settings.console, system_clock.CLOCK, known) as table:
                return await _execute(store, feed, workers, boot, table, settings)
        except errors.StoreError:
            settings.say_how_to_resume()
            raise


async def _listener(
    store: Store, feed: RunFeed, settings: RunSettings
) -> Callable[[ClaimedJob], OnOutput | None] | None:
    """Return what finds the listener for the output of an attempt; None if none wants output."""
    wanted = [one for one in (settings.output_dir, settings.live_output) if one is not None]
    for run in feed.runs if wanted else ():
        rows = await store.list_jobs(run.run)
        for one in wanted:
            one.expect(run, rows)
    if len(wanted) < 2:  # noqa: PLR2004
        return wanted[0].listener if wanted else None

    def listener(claimed: ClaimedJob) -> OnOutput | None:
        found = [found for one in wanted if (found := one.listener(claimed))]
        return tee_output(*found) if found else None

    return listener


async def _execute(
    store: Store,
    feed: RunFeed,
    workers: LocalWorkers,
    boot: UUID,
    view: ProgressTable | ProgressLines,
    settings: RunSettings,
) -> tuple[RunSnapshot, int | None]:
    """Work until the runs have ended; return a snapshot, and an exit code if it was cut short."""
    interrupt = RunSignals(workers, view.say)
    outage = StoreOutage(system_clock.CLOCK, view.say)
    working = asyncio.create_task(workers.run())
    tasks = [
        working,
        asyncio.create_task(wait.wait(store, [run.run for run in feed.runs], outage)),
        asyncio.create_task(Maintainer(store, system_clock.CLOCK, boot).run(store.wait_for_work)),
        asyncio.create_task(_show_progress(feed, outage, view, settings.live_output)),
    ]
    try:
        with (
            listening_for_signals(interrupt.handle),
            _stopping_when_closed(settings.writer, interrupt),
        ):
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
            # Jobs that still run belong to other runs.
            others = workers.names()
            if others and interrupt.exit_code is None:
                more = f" and {len(others) - _MAX_NAMES} more" if len(others) > _MAX_NAMES else ""
                names = ", ".join(others[:_MAX_NAMES]) + more
                view.say(f"finishing {names} of other runs; press Ctrl-C to requeue them")
                interrupt.may_finish = False
            workers.drain()
            await working
    except errors.StoreError:
        # Running jobs are stopped as by a second Ctrl-C, as far as the store allows.
        workers.kill()
        with contextlib.suppress(errors.StoreError):
            await working
        raise
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    snapshot = await _show_once(feed, outage, view, settings.live_output)
    has_ended = all(one.row.state in states.TERMINAL_STATES for one in snapshot.runs)
    return snapshot, None if has_ended else interrupt.exit_code or exit_codes.FAILED


@contextlib.contextmanager
def _stopping_when_closed(writer: OutputWriter | None, interrupt: RunSignals) -> Iterator[None]:
    """Stop the run when its output is closed, as a signal ends other programs then."""
    if writer is None:
        yield
        return
    loop = asyncio.get_running_loop()
    stop = functools.partial(interrupt.handle, signal.SIGPIPE)

    def on_close() -> None:
        loop.call_soon_threadsafe(stop)

    writer.on_close = on_close
    if writer.error is not None:
        stop()
    yield
    writer.on_close = None


async def _show_progress(
    feed: RunFeed,
    outage: StoreOutage,
    view: ProgressTable | ProgressLines,
    live_output: LiveOutput | None,
) -> None:
    while True:
        await _show_once(feed, outage, view, live_output)
        await asyncio.sleep(feed.pause_seconds)


async def _show_once(
    feed: RunFeed,
    outage: StoreOutage,
    view: ProgressTable | ProgressLines,
    live_output: LiveOutput | None,
) -> RunSnapshot:
    snapshot = await outage.retry(feed.read)
    if live_output is not None:
        await outage.retry(functools.partial(live_output.complete, feed.reader, snapshot))
    view.show(snapshot)
    return snapshot


async def _write_results(
    store: Store, feed: RunFeed, snapshot: RunSnapshot, settings: RunSettings
) -> None:
    if settings.output_dir is not None:
        await settings.output_dir.complete(store, snapshot.runs)
        if settings.output_dir.error:
            settings.say(f"some output was not written: {settings.output_dir.error}")
    if settings.has_results:
        await summary.print_results(settings.console, store, snapshot.runs)
    if settings.is_json:
        await formatting.print_objects(store, feed.runs)
