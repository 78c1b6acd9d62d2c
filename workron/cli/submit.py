"""`workron submit`, which can wait and print output, and `workron validate`.

`validate` submits to a store in memory, so it finds what a submission would refuse, except for
conflicts with runs that the real store has.
"""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from workron.cli import (
    exit_codes,
    formatting,
    manage,
    manifest_files,
    options,
    stores,
)
from workron.cli.run_output import RunOutput
from workron.core import errors
from workron.core.plan import Kind
from workron.scheduling import submit as scheduling_submit
from workron.scheduling import wait as scheduling_wait

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workron.scheduling.submit import Request, Submission
    from workron.scheduling.wait import StoreOutage
    from workron.store.api import Store
    from workron.store.types import RunRow


class SubmitFormat(StrEnum):
    """Output format of `submit`."""

    TEXT = "text"
    JSON = "json"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class SubmitSettings:
    """The options of one `workron submit`."""

    form: SubmitFormat
    is_waiting: bool
    prints_logs: bool


def submit(
    paths: options.Files,
    store: options.Store,
    namespace: options.FileNamespace = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until all runs have ended.")] = False,
    logs: Annotated[
        bool, typer.Option("--logs", help="Wait, and print the output of all jobs.")
    ] = False,
    output: Annotated[
        SubmitFormat,
        typer.Option("--output", "-o", help="Output format.", **options.choice(SubmitFormat)),
    ] = SubmitFormat.TEXT,
) -> None:
    """Submit jobs to a store; workers run them.

    Submits all files in one transaction, or none of them. Submitting an unfinished run again with
    the same content changes nothing. With --wait it exits with 1 if a run failed, and -o json
    prints the ended objects. Ctrl-C ends only the waiting.
    """
    if logs and output is not SubmitFormat.TEXT:
        raise errors.InputError(f"--logs prints the output of jobs; leave out -o {output}")
    request = manifest_files.request(paths, namespace)
    if not request.plans and not request.pools:
        raise errors.InputError("these files contain nothing to submit")
    for _, name in sorted(request.pools):
        typer.echo(formatting.ignored_pool(name), err=output is not SubmitFormat.TEXT)
    settings = SubmitSettings(output, wait or logs, logs)
    raise typer.Exit(asyncio.run(_submit_to(store, request, settings)))


def validate(paths: options.Files, namespace: options.FileNamespace = None) -> None:
    """Check manifest files as `run` does, without running anything."""
    request = manifest_files.request(paths, namespace, is_local=True)
    # A store in memory finds cycles that span several Jobs.
    asyncio.run(_validate(request))
    for plan in request.plans:
        commands = sum(node.kind is Kind.JOB for node in plan.nodes)
        count = f"{commands:,} jobs" if commands > 1 else "1 job"
        typer.echo(f"{plan.identity.kind.lower()}/{plan.identity.name} is valid: {count}")
    for _, name in sorted(request.pools):
        typer.echo(f"workerpool/{name} is valid")


async def _validate(request: Request) -> None:
    async with stores.opened("memory:") as store:
        await scheduling_submit.submit(store, request)


async def _submit_to(url: str, request: Request, settings: SubmitSettings) -> int:
    async with stores.opened(url, may_create=True) as store:
        submissions = await scheduling_submit.submit(store, request)
        _print_submissions(submissions, settings)
        outage = stores.outage()
        runs = [
            run
            for one in submissions
            if (run := await outage.retry(functools.partial(store.get_run, one.run))) is not None
        ]
        code = exit_codes.OK
        if settings.is_waiting:
            code = await _wait(store, runs, outage, settings)
        if settings.form is SubmitFormat.JSON:
            await formatting.print_objects(store, runs)
        return code


def _print_submissions(submissions: Sequence[Submission], settings: SubmitSettings) -> None:
    for one in submissions:
        name = f"{one.identity.kind.lower()}/{one.identity.name}"
        if settings.form is SubmitFormat.TEXT:
            typer.echo(f"{name} {one.effect}")
        elif settings.form is SubmitFormat.NAME:
            typer.echo(name)


async def _wait(
    store: Store, runs: Sequence[RunRow], outage: StoreOutage, settings: SubmitSettings
) -> int:
    ended = scheduling_wait.wait(store, [run.run for run in runs], outage)
    if settings.prints_logs:
        with formatting.open_sink() as write:
            await RunOutput(store, runs, write).print_until(ended, outage)
    else:
        await ended
    return await manage.report_ends(
        store, runs, outage, is_quiet=settings.form is not SubmitFormat.TEXT
    )
