"""Opens stores, and runs the coroutine of a command."""

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

OUTAGE_LIMIT: Final = timedelta(minutes=5)
"""How long a waiting command retries; longer than a restart or a failover takes."""


@contextlib.asynccontextmanager
async def opened(url: str, *, may_create: bool = False) -> AsyncIterator[Store]:
    """Open a store. Without `may_create`, a mistyped path is an error and not a new file."""
    store = await connect.connect(
        url, clock=system_clock.CLOCK, rng=system_clock.RNG, may_create=may_create
    )
    try:
        yield store
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def opened_with_retry(url: str, outage: StoreOutage) -> AsyncIterator[Store]:
    """Open a store, retrying while its server restarts; a missing file is an error at once."""
    opening = functools.partial(
        connect.connect, url, clock=system_clock.CLOCK, rng=system_clock.RNG, may_create=False
    )
    store = await (opening() if connect.is_file(url) else outage.retry(opening))
    try:
        yield store
    finally:
        await store.close()


def outage(limit: timedelta = OUTAGE_LIMIT) -> StoreOutage:
    """Make the retry of a waiting command, which reports outages on standard error."""
    return StoreOutage(
        system_clock.CLOCK, lambda text: typer.echo(f"workron: {text}", err=True), limit
    )


@contextlib.asynccontextmanager
async def opened_as_worker(url: str) -> AsyncIterator[WorkerStore]:
    """Open a store for a worker; the role may call the functions of workers only."""
    store = await connect.connect_worker(url, clock=system_clock.CLOCK, rng=system_clock.RNG)
    try:
        yield store
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def opened_for_run(url: str) -> AsyncIterator[Store]:
    """Open a store, and create its schema if it has none."""
    try:
        store = await connect.connect(url, clock=system_clock.CLOCK, rng=system_clock.RNG)
    except errors.SchemaMissingError:
        await connect.migrate(url, clock=system_clock.CLOCK, rng=system_clock.RNG)
        store = await connect.connect(url, clock=system_clock.CLOCK, rng=system_clock.RNG)
    try:
        yield store
    finally:
        await store.close()


def run_command(command: Coroutine[Any, Any, Answer]) -> Answer:
    """Run a command's coroutine; Ctrl-C exits with the code that shells expect."""
    try:
        return asyncio.run(command)
    except KeyboardInterrupt:
        raise typer.Exit(exit_codes.INTERRUPTED) from None


_P = ParamSpec("_P")
_T = TypeVar("_T")


class DaemonThreads(ThreadPoolExecutor):
    """Runs each call on a new daemon thread, so that a hanging call cannot delay the exit."""

    def submit(self, call: Callable[_P, _T], /, *args: _P.args, **named: _P.kwargs) -> Future[_T]:
        """Start a call."""
        future: Future[_T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(call(*args, **named))
            except BaseException as error:  # noqa: BLE001 - the waiting caller gets it
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Return at once."""
