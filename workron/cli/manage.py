"""The commands that change a store: submit, validate, wait, cancel and migrate.

`validate` submits to a store in memory, so it finds what a submission would refuse, except for
conflicts with runs that the real store has. `wait` retries while the store does not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from workron.cli import (
    exit_codes,
    formatting,
    manifest_files,
    object_ref,
    options,
    stores,
    summary,
    system_clock,
)
from workron.core import errors
from workron.core.plan import Kind
from workron.scheduling import job_view
from workron.scheduling import submit as scheduling_submit
from workron.scheduling import wait as scheduling_wait
from workron.store import connect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workron.cli.object_ref import ObjectReference
    from workron.core.ids import JobId
    from workron.scheduling.submit import Request, Submission
    from workron.store.types import JobRow, RunRow


def submit(
    paths: options.Files, store: options.Store, namespace: options.FileNamespace = None
) -> None:
    """Submit jobs to a store and exit; workers run them.

    Submits all files in one transaction, or none of them. Submitting an unfinished run again with
    the same content changes nothing.
    """
    request = manifest_files.request(paths, namespace)
    if not request.plans and not request.pools:
        raise errors.InputError("these files contain nothing to submit")
    for one in asyncio.run(_submit(store, request)):
        typer.echo(f"{one.identity.kind.lower()}/{one.identity.name} {one.effect}")
    for _, name in sorted(request.pools):
        typer.echo(formatting.ignored_pool(name))


def validate(paths: options.Files, namespace: options.FileNamespace = None) -> None:
    """Check manifest files as `run` does, without running anything."""
    request = manifest_files.request(paths, namespace, is_local=True)
    # A store in memory finds cycles that span several Jobs.
    asyncio.run(_submit("memory:", request))
    for plan in request.plans:
        commands = sum(node.kind is Kind.JOB for node in plan.nodes)
        count = f"{commands:,} jobs" if commands > 1 else "1 job"
        typer.echo(f"{plan.identity.kind.lower()}/{plan.identity.name} is valid: {count}")
    for _, name in sorted(request.pools):
        typer.echo(f"workerpool/{name} is valid")


async def _submit(url: str, request: Request) -> Sequence[Submission]:
    async with stores.opened(url, may_create=True) as store:
        return await scheduling_submit.submit(store, request)


_LAST_READ_SECONDS: Final = 5.0


def wait(
    names: object_ref.RunArguments,
    store: options.Store,
    namespace: options.Namespace = "default",
    timeout: Annotated[
        timedelta | None,
        options.duration("--timeout", "Stop waiting after this time: 30s, 5m, 1h30m."),
    ] = None,
) -> None:
    """Wait until all jobs and workflows have ended.

    Exits with 1 if one of them failed, and with 5 when --timeout expires. While the store does not
    answer, as during a restart, retries until the timeout, or for 5 minutes without one, and then
    exits with 3.
    """
    raise typer.Exit(asyncio.run(_wait(store, namespace, names, timeout)))


async def _wait(
    url: str, namespace: str, wanted: Sequence[ObjectReference], limit: timedelta | None
) -> int:
    outage = stores.outage(limit or stores.OUTAGE_LIMIT)
    try:
        async with asyncio.timeout(None if limit is None else limit.total_seconds()):
            async with stores.opened_with_retry(url, outage) as store:
                runs = [
                    await outage.retry(
                        functools.partial(object_ref.find_run, store, namespace, one)
                    )
                    for one in wanted
                ]
                rows = await scheduling_wait.wait(store, [run.run for run in runs], outage)
                allowed = await outage.retry(
                    functools.partial(job_view.allowed_failures_of, store, rows)
                )
    except TimeoutError:
        if outage.is_on:
            typer.echo("timed out: the store does not answer", err=True)
            return exit_codes.STORE
        typer.echo("timed out: not all jobs have ended", err=True)
        await _print_present_states(url, namespace, wanted)
        return exit_codes.TIMED_OUT
    _print_states(runs, rows, allowed)
    return summary.exit_code(rows)


async def _print_present_states(
    url: str, namespace: str, wanted: Sequence[ObjectReference]
) -> None:
    """Print the present states, if the store answers."""
    with contextlib.suppress(TimeoutError, *errors.TRANSIENT):
        async with asyncio.timeout(_LAST_READ_SECONDS), stores.opened(url) as store:
            runs = [await object_ref.find_run(store, namespace, one) for one in wanted]
            _print_states(runs, await store.get_jobs([run.run for run in runs]), {})


def _print_states(
    runs: Sequence[RunRow], rows: Sequence[JobRow], allowed: Mapping[JobId, str]
) -> None:
    for run, row in zip(runs, rows, strict=True):
        why = allowed.get(row.job) or formatting.reason(row)
        typer.echo(f"{run.kind.lower()}/{run.name} {row.state}" + (f": {why}" if why else ""))


def cancel(
    names: object_ref.RunArguments, store: options.Store, namespace: options.Namespace = "default"
) -> None:
    """Cancel jobs and workflows: cancels queued jobs and stops running ones."""
    asyncio.run(_cancel(store, namespace, names))


async def _cancel(url: str, namespace: str, wanted: Sequence[ObjectReference]) -> None:
    """Cancel all that can be cancelled, then report the others together."""
    refused: list[str] = []
    async with stores.opened(url) as store:
        runs = [await object_ref.find_run(store, namespace, one) for one in wanted]
        for run in runs:
            try:
                await scheduling_submit.cancel(store, run)
            except errors.StateError as error:
                refused.append(str(error))
            else:
                typer.echo(f"{run.kind.lower()}/{run.name} cancelled")
    if refused:
        raise errors.StateError("\n".join(refused))


def migrate(
    store: options.Store,
    timeout: Annotated[
        timedelta | None,
        options.duration("--timeout", "Retry this long if the server does not answer: 30s, 5m."),
    ] = None,
) -> None:
    """Create or upgrade the schema of a store; safe to run concurrently."""
    call = functools.partial(connect.migrate, store, clock=system_clock.CLOCK, rng=system_clock.RNG)
    applied = asyncio.run(call() if timeout is None else stores.outage(timeout).retry(call))
    for name in applied:
        typer.echo(f"applied {name}")
    if not applied:
        typer.echo("the schema is up to date")
