"""Opens stores, and retries their calls during an outage."""

from __future__ import annotations

import contextlib
import functools
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

import typer

from workron.cli import system_clock
from workron.core import errors
from workron.scheduling.wait import StoreOutage
from workron.store import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from contextlib import AbstractAsyncContextManager

    from workron.store.api import Store, WorkerStore


AnyStore = TypeVar("AnyStore", bound="WorkerStore")

OUTAGE_LIMIT: Final = timedelta(minutes=5)
"""How long a waiting command retries; longer than a restart or a failover takes."""

_SYSTEM: Final[Any] = {"clock": system_clock.CLOCK, "rng": system_clock.RNG}


@contextlib.asynccontextmanager
async def _closing(opening: Awaitable[AnyStore]) -> AsyncIterator[AnyStore]:
    store = await opening
    try:
        yield store
    finally:
        await store.close()


def opened(url: str, *, may_create: bool = False) -> AbstractAsyncContextManager[Store]:
    """Open a store. Without `may_create`, a mistyped path is an error and not a new file."""
    return _closing(connect.connect(url, may_create=may_create, **_SYSTEM))


def opened_with_retry(url: str, outage: StoreOutage) -> AbstractAsyncContextManager[Store]:
    """Open a store, retrying while its server restarts; a missing file is an error at once."""
    opening = functools.partial(connect.connect, url, may_create=False, **_SYSTEM)
    return _closing(opening() if connect.is_file(url) else outage.retry(opening))


def opened_as_worker(url: str) -> AbstractAsyncContextManager[WorkerStore]:
    """Open a store for a worker; the role may call the functions of workers only."""
    return _closing(connect.connect_worker(url, **_SYSTEM))


def opened_for_run(url: str) -> AbstractAsyncContextManager[Store]:
    """Open a store, and create its schema if it has none."""

    async def opening() -> Store:
        try:
            return await connect.connect(url, **_SYSTEM)
        except errors.SchemaMissingError:
            await connect.migrate(url, **_SYSTEM)
            return await connect.connect(url, **_SYSTEM)

    return _closing(opening())


def outage(limit: timedelta = OUTAGE_LIMIT) -> StoreOutage:
    """Make the retry of a waiting command, which reports outages on standard error."""
    return StoreOutage(
        system_clock.CLOCK, lambda text: typer.echo(f"workron: {text}", err=True), limit
    )
