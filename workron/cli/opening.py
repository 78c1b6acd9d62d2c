"""Opens a store for the length of a command, and runs what is asynchronous about a command."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

import typer

from workron.cli import exit_codes, system
from workron.core import errors
from workron.scheduling.outage import Outage
from workron.store import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from workron.store.protocol import Store, WorkerStore

Answer = TypeVar("Answer")

LONG: Final = timedelta(minutes=5)
"""So long a server may be away while somebody waits: more than a restart takes, or a failover."""


@contextlib.asynccontextmanager
async def opened(url: str, *, may_create: bool = False) -> AsyncIterator[Store]:
    """Open a store and close it again; who only reads makes none of a path with a slip in it."""
    store = await connect.connect(url, clock=system.CLOCK, rng=system.RNG, may_create=may_create)
    try:
        yield store
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def opened_patiently(url: str, outage: Outage) -> AsyncIterator[Store]:
    """Open a store, also while its server restarts; a file is there or it is not."""
    opening = functools.partial(
        connect.connect, url, clock=system.CLOCK, rng=system.RNG, may_create=False
    )
    store = await (opening() if connect.is_file(url) else outage.bear(opening))
    try:
        yield store
    finally:
        await store.close()


def outage(patience: timedelta = LONG) -> Outage:
    """Make what bears an outage for somebody who waits, and tells of it beside the output."""
    return Outage(system.CLOCK, lambda text: typer.echo(f"workron: {text}", err=True), patience)


@contextlib.asynccontextmanager
async def opened_as_worker(url: str) -> AsyncIterator[WorkerStore]:
    """Open a store for the worker's verbs alone, for which a role suffices that can call these."""
    store = await connect.connect_worker(url, clock=system.CLOCK, rng=system.RNG)
    try:
        yield store
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def opened_for_run(url: str) -> AsyncIterator[Store]:
    """Open a store; one that was never used is made ready, for a run is its own beginning."""
    try:
        store = await connect.connect(url, clock=system.CLOCK, rng=system.RNG)
    except errors.SchemaMissingError:
        await connect.migrate(url, clock=system.CLOCK, rng=system.RNG)
        store = await connect.connect(url, clock=system.CLOCK, rng=system.RNG)
    try:
        yield store
    finally:
        await store.close()


def carry_out(command: Coroutine[Any, Any, Answer]) -> Answer:
    """Run a command's coroutine; Ctrl-C ends it with the code that shells expect."""
    try:
        return asyncio.run(command)
    except KeyboardInterrupt:
        raise typer.Exit(exit_codes.INTERRUPTED) from None
