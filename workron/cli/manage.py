"""The commands that change a store: submit, validate, wait, cancel and migrate.

`validate` submits to a store in memory, so it finds what a submission would refuse, except for
conflicts with runs that the real store has. `wait` retries while the store does not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
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
from workron.cli.stores import opened, run_command
from workron.core import errors
from workron.core.plan import Kind
from workron.scheduling import cancel as scheduling_cancel
from workron.scheduling import submit as scheduling_submit
from workron.scheduling import wait as scheduling_wait
from workron.scheduling.submit import Effect
from workron.store import connect

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from workron.scheduling.submit import Request, Submission
    from workron.store.types import JobRow, RunRow


_EFFECTS: Final = {
    Effect.CREATED: "submitted",
    Effect.NONE: "unchanged: already submitted",
    Effect.SUSPENDED: "suspended: running jobs finish, no new ones start",
    Effect.RESUMED: "resumed",
    Effect.CANCELLED: "cancelled",
}


def submit(
    paths: options.Files,
    store: options.Store = None,
    namespace: options.FileNamespace = None,
) -> None:
    """Submit jobs to a store and exit; workers run them.

    Submits all files in one transaction, or none of them. Submitting an unfinished run again with
    the same content changes nothing.
    """
    url = options.require_persistent_store(store)
    request = manifest_files.request(paths, namespace)
    if not request.plans and not request.pools:
        raise errors.InputError("these files contain nothing to submit")
    for one in run_command(_submit(url, request)):
        typer.echo(f"{one.identity.kind.lower()}/{one.identity.name} {_EFFECTS[one.effect]}")
    for _, name in sorted(request.pools):
        typer.echo(formatting.ignored_pool(name))


async def _submit(url: str, request: Request) -> Sequence[Submission]:
    async with opened(url, may_create=True) as store:
        return await scheduling_submit.submit(store, request)


def validate(paths: options.Files, namespace: options.FileNamespace = None) -> None:
    """Check manifest files as `submit` does, without a store."""
    request = manifest_files.request(paths, namespace)
    run_command(_submit_to_memory(request))
    for plan in request.plans:
        commands = sum(node.kind is Kind.JOB for node in plan.nodes)
        count = f"{commands:,} jobs" if commands > 1 else "1 job"
        typer.echo(f"{plan.identity.kind.lower()}/{plan.identity.name} is valid: {count}")
    for _, name in sorted(request.pools):
        typer.echo(f"workerpool/{name} is valid")


async def _submit_to_memory(request: Request) -> None:
    # The store finds cycles that span several Jobs.
    async with opened("memory:") as store:
        await scheduling_submit.submit(store, request)


_LAST_READ_SECONDS: Final = 5.0


def wait(
    names: Annotated[list[str], typer.Argument(metavar="[KIND/][NAMESPACE/]NAME...")],
    store: options.Store = None,
    namespace: options.Namespace = "default",
    timeout: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Stop waiting after this time: 30s, 5m, 1h30m."),
    ] = None,
) -> None:
    """Wait until all jobs and workflows have ended.

    Exits with 1 if one of them failed, and with 124 when --timeout expires. While the store does
    not answer, as during a restart, retries until the timeout, or for 5 minutes without one, and
    then exits with 5.
    """
    url = options.require_persistent_store(store)
    wanted = [object_ref.parse(name) for name in names]
    limit = None if timeout is None else options.duration("--timeout", timeout)
    raise typer.Exit(stores.run_command(_wait(url, namespace, wanted, limit)))


async def _wait(
    url: str, namespace: str, wanted: Sequence[object_ref.ObjectReference], limit: timedelta | None
) -> int:
    outage = stores.outage(limit or stores.OUTAGE_LIMIT)
    try:
        async with asyncio.timeout(None if limit is None else limit.total_seconds()):
            async with stores.opened_with_retry(url, outage) as store:
                roots = [
                    await outage.retry(
                        functools.partial(object_ref.find_root, store, namespace, one)
                    )
                    for one in wanted
                ]
                rows = await scheduling_wait.wait(store, [root.run for root in roots], outage)
    except TimeoutError:
        return await _stop_waiting(url, namespace, wanted, is_store_down=outage.is_on)
    _print_states(roots, rows)
    return summary.exit_code(rows)


async def _stop_waiting(
    url: str, namespace: str, wanted: Sequence[object_ref.ObjectReference], *, is_store_down: bool
) -> int:
    """Print the present states when the timeout expires, if the store answers."""
    if is_store_down:
        typer.echo("timed out: the store does not answer", err=True)
        return exit_codes.STORE_TIMEOUT
    typer.echo("timed out: not all jobs have ended", err=True)
    with contextlib.suppress(TimeoutError, *errors.TRANSIENT):
        async with asyncio.timeout(_LAST_READ_SECONDS), stores.opened(url) as store:
            roots = [await object_ref.find_root(store, namespace, one) for one in wanted]
            _print_states(roots, await store.get_jobs([root.run for root in roots]))
    return exit_codes.TIMED_OUT


def _print_states(roots: Sequence[RunRow], rows: Sequence[JobRow]) -> None:
    for root, row in zip(roots, rows, strict=True):
        why = formatting.reason(row)
        typer.echo(f"{root.kind.lower()}/{root.name} {row.state}" + (f": {why}" if why else ""))


def cancel(
    names: Annotated[list[str], typer.Argument(metavar="[KIND/][NAMESPACE/]NAME...")],
    store: options.Store = None,
    namespace: options.Namespace = "default",
) -> None:
    """Cancel jobs and workflows: cancels queued jobs and stops running ones."""
    url = options.require_persistent_store(store)
    wanted = [object_ref.parse(name) for name in names]
    run_command(_cancel(url, namespace, wanted))


async def _cancel(url: str, namespace: str, wanted: list[object_ref.ObjectReference]) -> None:
    """Cancel all that can be cancelled, then report the others together."""
    refused: list[str] = []
    async with opened(url) as store:
        roots = [await object_ref.find_root(store, namespace, one) for one in wanted]
        for root in roots:
            try:
                await scheduling_cancel.cancel(store, root)
            except errors.StateError as error:
                refused.append(str(error))
            else:
                typer.echo(f"{root.kind.lower()}/{root.name} cancelled")
    if refused:
        raise errors.StateError("\n".join(refused))


def migrate(
    store: options.Store = None,
    timeout: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION", help="Retry this long if the server does not answer: 30s, 5m."
        ),
    ] = None,
) -> None:
    """Create or upgrade the schema of a store; safe to run concurrently."""
    url = options.require_persistent_store(store)
    limit = None if timeout is None else options.duration("--timeout", timeout)
    applied = stores.run_command(_migrate(url, limit))
    for name in applied:
        typer.echo(f"applied {name}")
    if not applied:
        typer.echo("the schema is up to date")


async def _migrate(url: str, limit: timedelta | None) -> Sequence[str]:
    call = functools.partial(connect.migrate, url, clock=system_clock.CLOCK, rng=system_clock.RNG)
    return await (call() if limit is None else stores.outage(limit).retry(call))
