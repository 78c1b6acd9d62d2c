"""The commands wait and migrate. `wait` retries while the store does not answer."""

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
    object_ref,
    options,
    stores,
    summary,
    system_clock,
)
from workron.core import errors
from workron.scheduling import job_view
from workron.scheduling import wait as scheduling_wait
from workron.store import connect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from workron.cli.object_ref import ObjectReference
    from workron.core.ids import JobId
    from workron.scheduling.wait import StoreOutage
    from workron.store.api import Store
    from workron.store.types import JobRow, RunRow


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
                await scheduling_wait.wait(store, [run.run for run in runs], outage)
                return await report_ends(store, runs, outage)
    except TimeoutError:
        if outage.is_on:
            typer.echo("timed out: the store does not answer", err=True)
            return exit_codes.STORE
        typer.echo("timed out: not all jobs have ended", err=True)
        await _print_present_states(url, namespace, wanted)
        return exit_codes.TIMED_OUT


async def report_ends(
    store: Store, runs: Sequence[RunRow], outage: StoreOutage, *, is_quiet: bool = False
) -> int:
    """Print how runs have ended, unless it is quiet, and return the exit code."""
    rows = await outage.retry(functools.partial(store.get_jobs, [run.run for run in runs]))
    allowed = await outage.retry(functools.partial(job_view.allowed_failures_of, store, rows))
    if not is_quiet:
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
