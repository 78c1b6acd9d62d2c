"""`workron submit`: hands files to a store, where workers find them, and leaves."""

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
from workron.cli.stores import carry_out, opened
from workron.core import errors
from workron.core.plan import Kind
from workron.scheduling import submit as scheduling
from workron.scheduling.cancel import cancel as cancel_cancel
from workron.scheduling.submit import Effect, Request
from workron.scheduling.submit import submit as submit_submit
from workron.scheduling.wait import wait as wait_wait
from workron.store import connect

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from workron.scheduling.submit import Submission
    from workron.store.types import JobRow, RunRow


_WORDS: Final = {
    Effect.CREATED: "submitted",
    Effect.NONE: "unchanged: it was submitted before and goes on",
    Effect.SUSPENDED: "suspended: what runs of it runs on, nothing new starts",
    Effect.RESUMED: "resumed",
    Effect.CANCELLED: "cancelled",
}


def submit(
    paths: options.Files,
    store: options.Store = None,
    namespace: options.FileNamespace = None,
) -> None:
    """Submit jobs and leave: what this acknowledges is never lost.

    All files are taken together, or none of them. An unfinished run of the same name and content
    is acknowledged as it is.
    """
    url = options.lasting(store)
    request = manifest_files.request(paths, namespace)
    if not request.plans and not request.pools:
        raise errors.InputError("there is nothing in these files to submit")
    for one in carry_out(_submit(url, request)):
        typer.echo(f"{one.identity.kind.lower()}/{one.identity.name} {_WORDS[one.effect]}")
    for _, name in sorted(request.pools):
        typer.echo(formatting.pool_left_alone(name))


async def _submit(url: str, request: Request) -> Sequence[Submission]:
    async with opened(url, may_create=True) as store:
        return await scheduling.submit(store, request)


def validate(paths: options.Files, namespace: options.FileNamespace = None) -> None:
    """Check files as a submission would, and say what is in them."""
    request = manifest_files.request(paths, namespace)
    carry_out(_try(request))
    for plan in request.plans:
        commands = sum(node.kind is Kind.JOB for node in plan.nodes)
        count = f"{commands:,} jobs" if commands > 1 else "1 job"
        typer.echo(f"{plan.identity.kind.lower()}/{plan.identity.name} is valid: {count}")
    for _, name in sorted(request.pools):
        typer.echo(f"workerpool/{name} is valid")


async def _try(request: Request) -> None:
    # Cycles over several Jobs are found where they meet, which is in a store.
    async with opened("memory:") as store:
        await submit_submit(store, request)


_LAST_LOOK_SECONDS: Final = 5.0


def wait(
    names: Annotated[list[str], typer.Argument(metavar="[KIND/][NAMESPACE/]NAME...")],
    store: options.Store = None,
    namespace: options.Namespace = "default",
    timeout: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Give up after 30s, 5m, 1h30m.")
    ] = None,
) -> None:
    """Wait until all have ended; exits with 1 if one went wrong, 124 if it took too long.

    A store that is away, as while its server restarts, is asked again: until the timeout is over,
    or for 5 minutes if there is none. It exits with 5 if the store is still away then.
    """
    url = options.lasting(store)
    wanted = [object_ref.parse(name) for name in names]
    limit = None if timeout is None else options.duration("--timeout", timeout)
    raise typer.Exit(stores.carry_out(_wait(url, namespace, wanted, limit)))


async def _wait(
    url: str, namespace: str, wanted: Sequence[object_ref.Reference], limit: timedelta | None
) -> int:
    outage = stores.outage(limit or stores.LONG)
    try:
        async with asyncio.timeout(None if limit is None else limit.total_seconds()):
            async with stores.opened_patiently(url, outage) as store:
                roots = [
                    await outage.bear(
                        functools.partial(object_ref.find_root, store, namespace, one)
                    )
                    for one in wanted
                ]
                rows = await wait_wait(store, [root.run for root in roots], outage)
    except TimeoutError:
        return await _stop_waiting(url, namespace, wanted, is_away=outage.is_on)
    _tell(roots, rows)
    return summary.exit_code(rows)


async def _stop_waiting(
    url: str, namespace: str, wanted: Sequence[object_ref.Reference], *, is_away: bool
) -> int:
    """Say how things stand when the time is over, unless there is nobody to ask."""
    if is_away:
        typer.echo("the time to wait is over, and the store is away", err=True)
        return exit_codes.STORE_TIMEOUT
    typer.echo("the time to wait is over", err=True)
    with contextlib.suppress(TimeoutError, *errors.TRANSIENT):
        async with asyncio.timeout(_LAST_LOOK_SECONDS), stores.opened(url) as store:
            roots = [await object_ref.find_root(store, namespace, one) for one in wanted]
            _tell(roots, await store.get_jobs([root.run for root in roots]))
    return exit_codes.TIMED_OUT


def _tell(roots: Sequence[RunRow], rows: Sequence[JobRow]) -> None:
    for root, row in zip(roots, rows, strict=True):
        why = formatting.reason(row)
        typer.echo(f"{root.kind.lower()}/{root.name} {row.state}" + (f": {why}" if why else ""))


def cancel(
    names: Annotated[list[str], typer.Argument(metavar="[KIND/][NAMESPACE/]NAME...")],
    store: options.Store = None,
    namespace: options.Namespace = "default",
) -> None:
    """Cancel jobs and workflows: nothing of them starts any more, and what runs is ended."""
    url = options.lasting(store)
    wanted = [object_ref.parse(name) for name in names]
    carry_out(_cancel(url, namespace, wanted))


async def _cancel(url: str, namespace: str, wanted: list[object_ref.Reference]) -> None:
    """Cancel all that can be; those that had ended are complained of together, at the end."""
    refused: list[str] = []
    async with opened(url) as store:
        roots = [await object_ref.find_root(store, namespace, one) for one in wanted]
        for root in roots:
            try:
                await cancel_cancel(store, root)
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
            metavar="DURATION", help="Ask a server that is away again for 30s, 5m, 1h30m."
        ),
    ] = None,
) -> None:
    """Bring a store to the schema of this program; safe to run from many places at once."""
    url = options.lasting(store)
    limit = None if timeout is None else options.duration("--timeout", timeout)
    applied = stores.carry_out(_migrate(url, limit))
    for name in applied:
        typer.echo(f"applied {name}")
    if not applied:
        typer.echo("nothing to do: the schema is up to date")


async def _migrate(url: str, limit: timedelta | None) -> Sequence[str]:
    call = functools.partial(connect.migrate, url, clock=system_clock.CLOCK, rng=system_clock.RNG)
    return await (call() if limit is None else stores.outage(limit).bear(call))
