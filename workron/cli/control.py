"""The commands that change whole runs: cancel, suspend, resume and delete.

All names are looked up before the first run is changed. Runs that cannot be changed are reported at
the end, after the others were changed.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Annotated

import typer

from workron.cli import object_ref, options, stores
from workron.core import errors
from workron.scheduling import submit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from workron.cli.object_ref import ObjectReference
    from workron.store.api import Store
    from workron.store.types import RunRow


def cancel(
    names: object_ref.RunArguments,
    store: options.Store,
    namespace: options.Namespace = "default",
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Also cancel the tasks of `finally`.")
    ] = False,
) -> None:
    """Cancel jobs and workflows: cancels queued jobs and stops running ones.

    Tasks of `finally` run nevertheless; a second cancel stops these, too.
    """
    asyncio.run(_change(store, namespace, names, functools.partial(_cancel, force=force)))


def suspend(
    names: object_ref.RunArguments, store: options.Store, namespace: options.Namespace = "default"
) -> None:
    """Suspend jobs and workflows: running jobs finish, and no new ones start."""
    asyncio.run(_change(store, namespace, names, _suspend))


def resume(
    names: object_ref.RunArguments, store: options.Store, namespace: options.Namespace = "default"
) -> None:
    """Resume suspended jobs and workflows."""
    asyncio.run(_change(store, namespace, names, _resume))


def delete(
    names: object_ref.RunArguments, store: options.Store, namespace: options.Namespace = "default"
) -> None:
    """Delete ended jobs and workflows from the store, with their output and results.

    Refuses runs that have not ended, that unfinished runs depend on, or that were made from a
    custom resource. If it is interrupted, the rest can be deleted by the id of the run.
    """
    asyncio.run(_change(store, namespace, names, _delete))


async def _cancel(store: Store, run: RunRow, *, force: bool) -> str:
    await submit.cancel(store, run, force=force)
    return "cancelled"


async def _suspend(store: Store, run: RunRow) -> str:
    if not await store.suspend(run.run):
        raise errors.StateError(f"{_ended(run)} cannot be suspended")
    return "suspended: running jobs finish, no new ones start"


async def _resume(store: Store, run: RunRow) -> str:
    if not await store.resume(run.run):
        raise errors.StateError(f"{_ended(run)} cannot be resumed")
    return "resumed"


async def _delete(store: Store, run: RunRow) -> str:
    await submit.delete(store, run)
    return "deleted"


def _ended(run: RunRow) -> str:
    return f"{run.kind} {run.name!r} has ended or is being cancelled; it"


async def _change(
    url: str,
    namespace: str,
    wanted: Sequence[ObjectReference],
    change: Callable[[Store, RunRow], Awaitable[str]],
) -> None:
    """Change all runs that can be changed, then report the others together."""
    refused: list[str] = []
    async with stores.opened(url) as store:
        runs = [await object_ref.find_run(store, namespace, one) for one in wanted]
        for run in runs:
            try:
                effect = await change(store, run)
            except errors.StateError as error:
                refused.append(str(error))
            else:
                typer.echo(f"{run.kind.lower()}/{run.name} {effect}")
    if refused:
        raise errors.StateError("\n".join(refused))
