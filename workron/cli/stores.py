"""Opens a store for the length of a command, and runs what is asynchronous about a command."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

import typer

from workron.cli import exit_codes, system_clock
from workron.core import errors
from workron.scheduling.wait import StoreOutage
from workron.store import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine

    from workron.store.api import Store, WorkerStore


Answer = TypeVar("Answer")

LONG: Final = timedelta(minutes=5)
"""So long a server may be away while somebody waits: more than a restart takes, or a failover."""


@contextlib.asynccontextmanager
async def opened(url: str, *, may_create: bool = False) -> AsyncIterator[Store]:
    """Open a store and close it again; who only reads makes none of a path with a slip in it."""
    store = await connect.connect(
        url, clock=system_clock.CLOCK, rng=system_clock.RNG, may_create=may_create
    )
    try:
        yield store
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def opened_patiently(url: str, outage: StoreOutage) -> AsyncIterator[Store]:
    """Open a store, also while its server restarts; a file is there or it is not."""
    opening = functools.partial(
        connect.connect, url, clock=system_clock.CLOCK, rng=system_clock.RNG, may_create=False
    )
    store = await (opening() if connect.is_file(url) else outage.bear(opening))
    try:
        yield store
    finally:
        await store.close()


def outage(patience: timedelta = LONG) -> StoreOutage:
    """Make what bears an outage for somebody who waits, and tells of it beside the output."""
    return StoreOutage(
        system_clock.CLOCK, lambda text: typer.echo(f"workron: {text}", err=True), patience
    )


@contextlib.asynccontextmanager
async def opened_as_worker(url: str) -> AsyncIterator[WorkerStore]:
    """Open a store for the worker's verbs alone, for which a role suffices that can call these."""
    store = await connect.connect_worker(url, clock=system_clock.CLOCK, rng=system_clock.RNG)
    try:
        yield store
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def opened_for_run(url: str) -> AsyncIterator[Store]:
    """Open a store; one that was never used is made ready, for a run is its own beginning."""
    try:
        store = await connect.connect(url, clock=system_clock.CLOCK, rng=system_clock.RNG)
    except errors.SchemaMissingError:
        await connect.migrate(url, clock=system_clock.CLOCK, rng=system_clock.RNG)
        store = await connect.connect(url, clock=system_clock.CLOCK, rng=system_clock.RNG)
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


_P = ParamSpec("_P")
_T = TypeVar("_T")


class Daemons(ThreadPoolExecutor):
    """Runs each call on a thread of its own; who calls gives up by itself, so there are few."""

    def submit(self, call: Callable[_P, _T], /, *args: _P.args, **named: _P.kwargs) -> Future[_T]:
        """Run a call."""
        future: Future[_T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(call(*args, **named))
            except BaseException as error:  # noqa: BLE001 - whoever waits for it gets it
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for none."""
